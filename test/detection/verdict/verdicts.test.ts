import { isNotNull } from "drizzle-orm";
import { afterAll, beforeEach, expect, test } from "vitest";
import { askForVerdicts, findDueVerdicts, readVerdicts, storeVerdict } from "#db/detection/verdicts.ts";
import { spikes, verdicts } from "#db/schema/spikes.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { connectAs } from "../trend-support.ts";
import { newSpike, verdictOf } from "./verdict-world.ts";

const database = await createMigratedDatabase();
afterAll(() => database.drop());
const { db } = database;
const OPENED = Date.UTC(2026, 10, 20, 12);

beforeEach(() => database.pool.query("truncate spikes cascade"));

async function addSpike(over: Parameters<typeof newSpike>[1] = {}): Promise<number> {
  const [row] = await db.insert(spikes).values(newSpike(OPENED, over)).returning({ id: spikes.id });
  return row?.id ?? -1;
}

const dueAt = async (nowMs: number, limit = 40) =>
  (await findDueVerdicts(db, nowMs, limit)).map(({ spike, look }) => [spike.id, look]);

test("one of two replicas that judge the same spike stores the verdict", async () => {
  const spike = { id: await addSpike(), zoneId: 101 };
  const replicas = [connectAs("one", database), connectAs("other", database)];
  const stored = await Promise.all(
    replicas.map((replica, i) => storeVerdict(replica.db, spike, verdictOf("first", OPENED + i))),
  );
  expect(stored.filter(Boolean)).toHaveLength(1);
  expect((await readVerdicts(db, [spike.id])).get(spike.id)).toHaveLength(1);
});

test("a verdict that was asked for is due before all others, and one replica replaces the former", async () => {
  const [old, other] = [await addSpike({ ruleId: "1" }), await addSpike({ ruleId: "2" })];
  const [spike, now] = [{ id: old, zoneId: 101 }, OPENED + 40_000];
  await storeVerdict(db, spike, verdictOf("first", OPENED));
  expect(await dueAt(now)).toEqual([[other, "first"]]);
  await askForVerdicts(db, [old, other], now);
  expect(await dueAt(now)).toEqual([
    [old, "first"],
    [other, "first"],
  ]);
  const stored = await Promise.all([1, 2].map((i) => storeVerdict(db, spike, verdictOf("first", now + i))));
  expect(stored.filter(Boolean)).toHaveLength(1);
  const [verdict, ...others] = (await readVerdicts(db, [old])).get(old) ?? [];
  expect([(verdict?.judgedAt ?? 0) > now, others]).toEqual([true, []]);
  expect(await dueAt(now)).toEqual([[other, "first"]]);
});

test("a verdict that was asked for is judged however old its spike is, and a later one answers it, too", async () => {
  const id = await addSpike();
  await storeVerdict(db, { id, zoneId: 101 }, verdictOf("half-hour", OPENED + 30 * MINUTE_MS));
  await askForVerdicts(db, [id], OPENED + 3 * DAY_MS);
  expect(await dueAt(OPENED + 3 * DAY_MS)).toEqual([[id, "day"]]);
  await storeVerdict(db, { id, zoneId: 101 }, verdictOf("day", OPENED + 3 * DAY_MS));
  expect(await dueAt(OPENED + 3 * DAY_MS)).toEqual([]);
  expect((await readVerdicts(db, [id])).get(id)).toHaveLength(2);
});

test("a verdict that was asked for and saw no event replaces none, and is asked for no more", async () => {
  const spike = { id: await addSpike(), zoneId: 101 };
  await storeVerdict(db, spike, verdictOf("first", OPENED));
  const { counts, ...blind } = verdictOf("day", OPENED + DAY_MS);
  for (const look of ["first", "day"] as const) {
    await askForVerdicts(db, [spike.id], OPENED + DAY_MS);
    const newer = { ...blind, look, counts: { ...counts, events: 0 } };
    expect(await storeVerdict(db, spike, newer)).toBe(false);
    expect(await readVerdicts(db, [spike.id])).toEqual(
      new Map([[spike.id, [expect.objectContaining({ look: "first", judgedAt: OPENED }) as unknown]]]),
    );
  }
  expect(await db.select().from(verdicts).where(isNotNull(verdicts.askedAt))).toEqual([]);
});

test("readVerdicts returns the verdicts of each spike, the oldest first, and leaves out spikes without any", async () => {
  const [one, other, none] = [
    await addSpike(),
    await addSpike({ ruleId: "2" }),
    await addSpike({ ruleId: "3" }),
  ];
  await storeVerdict(db, { id: one, zoneId: 101 }, verdictOf("half-hour", OPENED + 30 * MINUTE_MS));
  await storeVerdict(db, { id: other, zoneId: 101 }, verdictOf("first", OPENED));
  await storeVerdict(db, { id: one, zoneId: 101 }, verdictOf("first", OPENED));
  const found = await readVerdicts(db, [one, other, none]);
  expect(Array.from(found, ([id, all]) => [id, all.map(({ look }) => look)])).toEqual([
    [one, ["first", "half-hour"]],
    [other, ["first"]],
  ]);
});

test("a request with NUL and half characters is stored readable, and everything else as it was", async () => {
  const id = await addSpike();
  const sample = { ...verdictOf("first", OPENED).sample, matched: "a\0b\ud800c", url: "/x?'\"\\u0000;--" };
  const verdict = { ...verdictOf("first", OPENED), sample: sample as never };
  expect(await storeVerdict(db, { id, zoneId: 101 }, verdict)).toBe(true);
  const [stored] = (await readVerdicts(db, [id])).get(id) ?? [];
  expect(stored).toEqual({ ...verdict, sample: { ...sample, matched: "a\ufffdb\ufffdc" } });
});

test("each verdict is due at its time after the opening, and no more once it is stored", async () => {
  const id = await addSpike();
  const times = [
    ["first", 0],
    ["minute", MINUTE_MS],
    ["five-minutes", 5 * MINUTE_MS],
    ["half-hour", 30 * MINUTE_MS],
    ["six-hours", 6 * HOUR_MS],
    ["day", DAY_MS],
  ] as const;
  for (const [look, afterMs] of times) {
    const before = look === "first" ? [[id, look]] : [];
    expect(await dueAt(OPENED + afterMs - 1)).toEqual(before);
    expect(await dueAt(OPENED + afterMs)).toEqual([[id, look]]);
    await storeVerdict(db, { id, zoneId: 101 }, verdictOf(look, OPENED + afterMs));
    expect(await dueAt(OPENED + afterMs)).toEqual([]);
  }
});

test("only the latest of several missed verdicts is due, until a spike is two days old", async () => {
  const id = await addSpike({ closedAt: new Date(OPENED + HOUR_MS) });
  expect(await dueAt(OPENED + 7 * HOUR_MS)).toEqual([[id, "six-hours"]]);
  await storeVerdict(db, { id, zoneId: 101 }, verdictOf("six-hours", OPENED + 7 * HOUR_MS));
  expect(await dueAt(OPENED + 8 * HOUR_MS)).toEqual([]);
  // A replica whose clock is behind does not go back to an earlier verdict.
  expect(await dueAt(OPENED + 5 * HOUR_MS)).toEqual([]);
  expect(await dueAt(OPENED + 2 * DAY_MS - 1)).toEqual([[id, "day"]]);
  expect(await dueAt(OPENED + 2 * DAY_MS)).toEqual([]);
});

test("a spike in shadow or about changes of rules is never due", async () => {
  await addSpike({ isShadow: true });
  await addSpike({ ruleId: "(action-change)", kind: "action-change", changes: [] });
  expect(await dueAt(OPENED)).toEqual([]);
});

test("a run takes incidents first, then open spikes, the newest first, and members of incidents last", async () => {
  const old = await addSpike({ ruleId: "1", openedAt: new Date(OPENED - HOUR_MS) });
  const closed = await addSpike({ ruleId: "2", closedAt: new Date(OPENED) });
  const newest = await addSpike({ ruleId: "3" });
  const incident = await addSpike({
    ruleId: "(sources)",
    kind: "sources",
    incident: "i",
    openedAt: new Date(OPENED - 2 * HOUR_MS),
    sources: {
      kind: "rules_per_ip",
      findings: [],
      grown: [],
      rules: [],
      events: 0,
      isMasked: false,
    } as never,
  });
  const member = await addSpike({ ruleId: "4", memberOf: incident });
  const order = (await dueAt(OPENED)).map(([id]) => id);
  expect(order).toEqual([incident, newest, old, closed, member]);
  expect((await dueAt(OPENED, 2)).map(([id]) => id)).toEqual([incident, newest]);
});
