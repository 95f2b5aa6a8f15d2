import { eq } from "drizzle-orm";
import { expect, test } from "vitest";
import { readAddressesOfRules } from "#db/detection/source-events.ts";
import { updateSpikes } from "#db/detection/spikes.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { spikes } from "#db/schema/spikes.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { eventsOf, openDetectWorld, START } from "./detect-support.ts";
import { connectAs, waitingBackend, ZONE } from "./trend-support.ts";

const { database, world } = await openDetectWorld();

const RULES = Array.from({ length: 40 }, (_, i) => `94${String(i).padStart(4, "0")}`);

/** Every rule gets so many events a minute. */
async function attackAll(minutes: number, { perMinute = 12, addresses = 12 } = {}): Promise<void> {
  const counts = Array<number>(minutes).fill(perMinute);
  const events = RULES.flatMap((ruleId) => eventsOf(counts, START, { ruleId }));
  await world.keep(events.map((event, i) => ({ ...event, ip: `203.0.113.${i % addresses}` })));
}

/** Counts the statements that update spikes from now on. */
async function countUpdates(): Promise<() => Promise<number>> {
  await database.pool.query(`
    create table if not exists spike_updates (at timestamptz default clock_timestamp());
    truncate spike_updates;
    create or replace function note_update() returns trigger language plpgsql as
      'begin insert into spike_updates default values; return null; end';
    create or replace trigger note_update after update on spikes for each statement execute function note_update()`);
  return async () => (await database.pool.query("select from spike_updates")).rowCount ?? 0;
}

test("a tick stores all spikes whose counts have changed with one statement", async () => {
  await attackAll(8);
  const detect = world.createDetector();
  await world.tickThrough(START, START + 7, detect);
  const before = await world.readSpikes();
  expect(before.length).toBe(RULES.length);
  const updates = await countUpdates();
  await world.tickThrough(START + 7, START + 8, detect);
  const after = await world.readSpikes();
  expect(after.every(({ windowCount }, i) => windowCount > (before[i]?.windowCount ?? 0))).toBe(true);
  const collected = after.filter(({ evidence }, i) => evidence.to !== before[i]?.evidence.to).length;
  expect(await updates()).toBe(1 + collected);
});

test("while many spikes are open, the evidence of each is collected less often, but at once if it gets graver", async () => {
  await attackAll(10, { perMinute: 30 });
  // With this z the first minute is critical already.
  const detect = world.createDetector({ sensitivity: () => ({ z: 0.5, floor: 10 }) });
  const collected = new Map<string, Set<string>>();
  for (let minute = START; minute < START + 9; minute += 1) {
    await world.tickThrough(minute, minute + 1, detect);
    for (const { ruleId, evidence } of await world.readSpikes())
      collected.set(ruleId, (collected.get(ruleId) ?? new Set()).add(evidence.to));
  }
  // Forty spikes take turns of two seconds, so each has one every other minute: five of nine.
  expect(new Set([...collected.values()].map(({ size }) => size))).toEqual(new Set([5]));
  const [before, ...others] = await world.readSpikes();
  const [ruleId] = RULES as [string];
  await database.db.update(spikes).set({ severity: "warning" }).where(eq(spikes.ruleId, ruleId));
  await world.tickThrough(START + 9, START + 10, detect);
  const [graver, ...rest] = await world.readSpikes();
  expect([before?.severity, graver?.severity]).toEqual(["critical", "critical"]);
  expect(graver?.evidence.to).not.toBe(before?.evidence.to);
  expect(rest.map(({ evidence }) => evidence.to)).toEqual(others.map(({ evidence }) => evidence.to));
});

test("the addresses of a spike are counted again when its window has new events", async () => {
  await attackAll(3, { perMinute: 90, addresses: 11 });
  const detect = world.createDetector();
  await world.tickThrough(START, START + 3, detect);
  const few = await world.readSpikes();
  expect(
    new Set(few.map(({ addresses, gradedBy, severity }) => `${addresses} ${gradedBy} ${severity}`)),
  ).toEqual(new Set(["11 addresses warning"]));
  const late = eventsOf([3], START + 2, { ruleId: RULES[0] as string });
  await world.keep(late.map((event, i) => ({ ...event, logId: `late ${i}`, ip: `198.51.100.${i}` })));
  await world.tickThrough(START + 2, START + 3, detect);
  const [first, second] = await world.readSpikes();
  expect([first?.addresses, first?.gradedBy]).toEqual([14, "both"]);
  expect([second?.addresses, second?.gradedBy]).toEqual([11, "addresses"]);
});

test("updateSpikes leaves spikes that another replica has closed or judged further, and stores the others", async () => {
  await attackAll(5);
  await world.tickThrough(START, START + 5);
  const [closed, further, open] = await database.db.select().from(spikes).orderBy(spikes.id).limit(3);
  if (closed === undefined || further === undefined || open === undefined) throw new Error("no spikes");
  const judgedThrough = new Date(open.judgedThrough.getTime() + MINUTE_MS);
  const changes = [open, further, closed].map((row) => ({
    ...row,
    judgedThrough,
    windowCount: 999,
    evidence: null,
  }));
  const later = connectAs("later replica", database);
  const updated = await inTransaction(database, async ({ client }) => {
    await client.query("update spikes set closed_at = judged_through where id = $1", [closed.id]);
    await client.query("update spikes set judged_through = $2 where id = $1", [
      further.id,
      new Date(judgedThrough.getTime() + MINUTE_MS),
    ]);
    const waiting = updateSpikes(later.db, changes);
    await waitingBackend(database, "later replica");
    return { waiting };
  });
  expect([...(await updated.waiting)]).toEqual([open.id]);
  const rows = await database.db.select().from(spikes).orderBy(spikes.id).limit(3);
  expect(rows.map(({ windowCount }) => windowCount === 999)).toEqual([false, false, true]);
  expect(rows[2]?.evidence).toEqual(open.evidence);
});

test("readAddressesOfRules counts events without a rule under an empty one, and leaves out unknown and erased addresses", async () => {
  const from = (ruleId: string | null, ips: readonly (string | null)[], minute: number) =>
    eventsOf([ips.length], minute).map((event, i) => ({
      ...event,
      ruleId,
      ip: ips[i] as string | null,
      logId: `${ruleId} ${minute} ${i}`,
    }));
  await world.keep([
    ...from(null, ["192.0.2.1", "192.0.2.2", null, "erased"], START),
    ...from("", ["192.0.2.1", "192.0.2.3", ""], START + 1),
    ...from("942100", ["192.0.2.8", "192.0.2.9", "192.0.2.8"], START),
    ...from("942100", ["192.0.2.7"], START + 3),
  ]);
  const span = { zoneId: ZONE, from: START, to: START + 3 };
  const asked = ["942100", "", "no such rule"].map((ruleId) => ({ ...span, ruleId }));
  const found = await readAddressesOfRules(database.db, asked, 200);
  expect(found.map((rows) => rows.map(({ ip }) => ip).toSorted())).toEqual([
    ["192.0.2.8", "192.0.2.9"],
    ["192.0.2.1", "192.0.2.2", "192.0.2.3"],
    [],
  ]);
  expect((await readAddressesOfRules(database.db, asked, 1)).map(({ length }) => length)).toEqual([1, 1, 0]);
});

test("readAddressesOfRules returns one address of a network of IPv6, so that its sender hides no other", async () => {
  const rotated = Array.from({ length: 50 }, (_, i) => `2001:db8:0:1:${i.toString(16)}::1`);
  const ips = [...rotated, "2001:db8::7", "198.51.100.1", "198.51.100.2"];
  await world.keep(
    eventsOf([ips.length], START + 5).map((event, i) => ({
      ...event,
      ruleId: "941100",
      ip: ips[i] as string,
      logId: `network ${i}`,
    })),
  );
  const asked = [{ zoneId: ZONE, from: START + 5, to: START + 6, ruleId: "941100" }];
  const [found = []] = await readAddressesOfRules(database.db, asked, 5);
  expect(found.map(({ ip }) => ip).toSorted()).toEqual([
    "198.51.100.1",
    "198.51.100.2",
    "2001:db8:0:1::",
    "2001:db8::7",
  ]);
});
