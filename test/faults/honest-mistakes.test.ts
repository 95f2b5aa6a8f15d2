import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { NOW } from "../emulator/support.ts";
import { ROUTES } from "../support/liar/lie.ts";
import { soakTest } from "../support/sample.ts";
import { CALM_MS, type LyingWorld, openLyingWorld, ROUND_MS } from "./lying-world.ts";
import { ZONE } from "./replica.ts";

const OTHER_ZONE = 102;
const HOUR_AGO = (hours: number) => NOW - (NOW % HOUR_MS) - hours * HOUR_MS;

/** Returns the hours that have settled and began with the history or later, with the reason of each that is not sealed. */
async function readUnsealed({ hours, emulator, firstHour }: LyingWorld) {
  const settled = emulator.now() - HOUR_MS - 2 * ROUND_MS;
  return (await hours())
    .filter(({ at, state }) => at >= firstHour + 2 * HOUR_MS && at <= settled && state !== "sealed")
    .map(({ at, state, reason }) => `${new Date(at).toISOString()} ${state} ${reason ?? ""}`);
}

async function readEvents({ database }: LyingWorld) {
  const { rows } = await database.pool.query<{
    id: string;
    at: number;
    rule: string;
    ip: string;
    url: string;
  }>(
    `select log_id as id, (extract(epoch from occurred_at) * 1000)::float8 as at, rule_id as rule, ip, url
     from waf_events where zone_id = $1 order by occurred_at, log_id`,
    [ZONE],
  );
  return rows;
}

async function readWithdrawn({ database }: LyingWorld): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    `select log_id as id from event_revisions where zone_id = $1 and field = 'withdrawn' and accepted_at is not null`,
    [ZONE],
  );
  return rows.map(({ id }) => id);
}

/** The first rounds seal every hour of the history. */
async function sealAll(world: LyingWorld): Promise<void> {
  for (let round = 0; round < 3; round++) await world.round(2 * MINUTE_MS);
  expect(await readUnsealed(world)).toEqual([]);
}

test("1, 2, 8, 10, 11, 12, 15: many small mistakes at once stop no seal of another hour, and every hour is sealed in the end", async () => {
  const world = await openLyingWorld({ pageSize: 50, historyHours: 16 });
  const { liar, emulator } = world;
  emulator.addAttack(`zone=101,rule=942100,start=-${(NOW - HOUR_AGO(9)) / 1_000}s,duration=1s,rate=1/s`);
  liar.tell({ kind: "endInclusive", routes: ["counts"] });
  liar.tell({ kind: "grows", routes: ["metrics"] });
  liar.tell({ kind: "repeats", routes: ["list"] });
  const unreadable = { from: HOUR_AGO(8), to: HOUR_AGO(7) };
  liar.tell({ kind: "unreadable", routes: ["list"], events: unreadable, count: 1 });
  await sealAll(world);
  const begins = emulator.now();
  const before = await readEvents(world);
  const [dropped] = before.filter(({ at }) => at >= HOUR_AGO(6));
  if (dropped === undefined) throw new Error("no event");
  liar.tell({ kind: "short", routes: ROUTES, events: { from: dropped.at, to: dropped.at + 1 } });
  for (const [route, hours] of [
    ["search", 5],
    ["list", 4],
  ] as const) {
    const events = { from: HOUR_AGO(hours), to: HOUR_AGO(hours - 1) };
    liar.tell({ kind: "phantom", routes: [route], events, count: 1, ends: begins + 8 * MINUTE_MS });
  }
  const vanished = { from: HOUR_AGO(12), to: HOUR_AGO(11) };
  liar.tell({ kind: "short", routes: ROUTES, events: vanished });
  liar.tell({ kind: "short", routes: ["counts"], events: { from: HOUR_AGO(3), to: HOUR_AGO(2) }, count: 1 });
  const moved = { from: HOUR_AGO(15), to: HOUR_AGO(14) };
  liar.tell({ kind: "shifted", share: 0.05, routes: ROUTES, shiftMs: 90 * MINUTE_MS, events: moved });
  await world.round(ROUND_MS);
  // The hours of the mistakes, and the two hours between which events move.
  expect((await readUnsealed(world)).length).toBeLessThanOrEqual(8);
  await world.pass(CALM_MS, 2 * ROUND_MS);
  expect(await readUnsealed(world)).toEqual([]);
  const after = await readEvents(world);
  const ids = after.map(({ id }) => id);
  expect(ids.length).toBe(new Set(ids).size);
  expect(new Set(ids)).toEqual(new Set([...before.map(({ id }) => id), ...ids]));
  const gone = before.filter(({ at }) => at >= vanished.from && at < vanished.to).map(({ id }) => id);
  expect((await readWithdrawn(world)).toSorted()).toEqual(
    [dropped.id, ...gone, ...liar.witness.phantomIds].toSorted(),
  );
  const { rows } = await world.database.pool.query(
    "select count(*)::integer as hours from coverage_windows where zone_id = $1 and evidence->'list'->>'unreadable' = '1'",
    [ZONE],
  );
  expect(rows[0].hours).toBeGreaterThan(0);
});

test("3: another zone's events do not enter, and the seals of the zone stay", async () => {
  const world = await openLyingWorld({ zones: [ZONE, OTHER_ZONE] });
  await sealAll(world);
  const before = (await world.hours()).filter(({ state }) => state === "sealed").length;
  const routes = ["search", "counts", "list", "metrics"] as const;
  world.liar.tell({
    kind: "foreign",
    routes,
    otherZone: OTHER_ZONE,
    ends: world.emulator.now() + 10 * MINUTE_MS,
  });
  for (let minute = 0; minute < 10; minute++) await world.round(MINUTE_MS);
  expect(world.liar.witness.phantomIds.size).toBeGreaterThan(5);
  const isForeign = ({ id }: { id: string }) => world.liar.witness.phantomIds.has(id);
  expect((await readEvents(world)).filter(isForeign)).toEqual([]);
  expect((await world.hours()).filter(({ state }) => state === "sealed").length).toBeGreaterThanOrEqual(
    before,
  );
  expect(await world.endLies()).toEqual([]);
  expect((await readEvents(world)).filter(isForeign)).toEqual([]);
});

test("4, 5: a false rule, address and URL that the search shows for eight minutes are corrected, and the former value is kept", async () => {
  const world = await openLyingWorld();
  const lie = { kind: "wrongValue", share: 0.02, routes: ["search"], ends: NOW + 8 * MINUTE_MS } as const;
  world.liar.tell({ ...lie, salt: "rule", fields: { ruleId: "999001" } });
  world.liar.tell({ ...lie, salt: "address", fields: { ip: "192.0.2.66", url: "/false" } });
  for (let round = 0; round < 4; round++) await world.round(2 * MINUTE_MS);
  const isFalse = ({ rule, ip, url }: Awaited<ReturnType<typeof readEvents>>[number]) =>
    rule === "999001" || ip === "192.0.2.66" || url === "/false";
  expect((await readEvents(world)).filter(isFalse).length).toBeGreaterThan(3);
  expect(await world.endLies()).toEqual([]);
  expect((await readEvents(world)).filter(isFalse)).toEqual([]);
  const { rows } = await world.database.pool.query(
    "select distinct field from event_revisions where accepted_at is not null and before in ('999001', '192.0.2.66', '/false')",
  );
  expect(rows.map(({ field }) => field).toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
    "ip",
    "rule_id",
    "url",
  ]);
});

soakTest(
  "an hour whose events all get new ids is held back by itself: the searches of later hours go on",
  async () => {
    const world = await openLyingWorld();
    await sealAll(world);
    const events = { from: HOUR_AGO(6), to: HOUR_AGO(5) };
    world.liar.tell({ kind: "short", routes: ROUTES, events });
    world.liar.tell({ kind: "phantom", routes: ROUTES, events });
    const isOther = (hour: string) => !hour.startsWith(new Date(events.from).toISOString());
    for (let passed = 0; passed < 150 * MINUTE_MS; passed += ROUND_MS) {
      await world.round(ROUND_MS);
      expect((await readUnsealed(world)).filter(isOther)).toEqual([]);
    }
    expect(await world.endLies()).toEqual([]);
  },
);

test("6, 7: when the platform begins to keep events for less, the horizon is learned, and no hour is reopened or lost", async () => {
  const world = await openLyingWorld();
  await sealAll(world);
  const readKept = async () => {
    const { rows } = await world.database.pool.query(
      "select kept_ms from platform_health where zone_id = $1",
      [ZONE],
    );
    return rows[0].kept_ms / HOUR_MS;
  };
  const routes = ["search", "counts", "list"] as const;
  for (const hours of [6.5, 4]) {
    world.liar.tell({ kind: "forgets", routes, keptMs: hours * HOUR_MS });
    await world.pass(HOUR_MS, 2 * ROUND_MS);
    expect(Math.abs((await readKept()) - hours)).toBeLessThan(0.5);
  }
  await world.pass(HOUR_MS, 2 * ROUND_MS);
  const lost = (await world.hours()).filter(
    ({ at, state, reopenedAt }) =>
      at >= world.firstHour + 2 * HOUR_MS && (state === "gap" || reopenedAt !== null),
  );
  expect(lost).toEqual([]);
});

soakTest(
  "13: events that appear after the seal, in the search only or never in the counts, are stored within hours",
  async () => {
    const world = await openLyingWorld();
    const late = [
      { shown: ["search"], events: { from: HOUR_AGO(2), to: HOUR_AGO(1) } },
      { shown: ["search", "list"], events: { from: HOUR_AGO(4), to: HOUR_AGO(3) } },
    ] as const;
    const lie = { kind: "short", share: 0.1, salt: "late" } as const;
    for (const { shown, events } of late) {
      const hidden = ROUTES.filter((route) => !(shown as readonly string[]).includes(route));
      world.liar.tell({ ...lie, routes: hidden, events });
      world.liar.tell({ ...lie, routes: shown, events, ends: NOW + 90 * MINUTE_MS });
    }
    const count = async () => {
      const stored = await readEvents(world);
      return late.map(({ events }) => stored.filter(({ at }) => at >= events.from && at < events.to).length);
    };
    await world.pass(90 * MINUTE_MS, 2 * ROUND_MS);
    const before = await count();
    expect(await readUnsealed(world)).toEqual([]);
    await world.pass(5 * HOUR_MS, 2 * ROUND_MS);
    const after = await count();
    expect(after.map((events, index) => events > (before[index] ?? 0))).toEqual([true, true]);
  },
);

soakTest(
  "14: the first hour, which the platform has begun to forget, is read as long as the platform shows it",
  async () => {
    const world = await openLyingWorld({ historyHours: 72 });
    world.liar.tell({ kind: "empty", routes: ROUTES, ends: NOW + 150_000 });
    const oldest = NOW - 72 * HOUR_MS;
    const shownThen = async () =>
      (await readEvents(world)).filter(({ at }) => at < oldest - (oldest % HOUR_MS) + HOUR_MS).length;
    for (let round = 0; round < 3; round++) await world.round(50_000);
    expect(await shownThen()).toBe(0);
    for (let round = 0; round < 2; round++) await world.round(11 * MINUTE_MS);
    expect(await shownThen()).toBeGreaterThan(0);
  },
);

soakTest(
  "16: after a lie that hid a third of the events for an hour, seals come back within ten minutes",
  async () => {
    const world = await openLyingWorld();
    await sealAll(world);
    world.liar.tell({
      kind: "short",
      share: 0.3,
      routes: ["search", "counts", "list"],
      ends: world.emulator.now() + HOUR_MS,
    });
    await world.pass(HOUR_MS, ROUND_MS);
    for (let round = 0; round < 5; round++) await world.round(2 * MINUTE_MS);
    expect(await readUnsealed(world)).toEqual([]);
  },
);

test("17: hours whose list shows only one feature are sealed at once, and the evidence names the others", async () => {
  const world = await openLyingWorld();
  world.emulator.setSwitches({ listFeatures: "waf" });
  await world.round(2 * MINUTE_MS);
  await world.round(2 * MINUTE_MS);
  expect(await readUnsealed(world)).toEqual([]);
  const { rows } = await world.database.pool.query(
    "select count(*)::integer as hours from coverage_windows where evidence->'list'->'unlisted'->'features' is not null",
  );
  expect(rows[0].hours).toBeGreaterThan(0);
});
