import { expect, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { migrate } from "#db/migrate.ts";
import { verifyCommand } from "#faces/cli/verify/verify.ts";
import { createRollUpTrendsJob } from "#jobs/detection/roll-up-trends.ts";
import { ownCommand } from "#lib/own-command.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { runStoreCommand } from "../cli/run-store-command.ts";
import { createDatabase02, migrateTo02 } from "../db/version-02.ts";
import { NOW, openEmulator, oracle } from "../emulator/support.ts";
import { openIngest, silent, ZONE } from "../ingest/ingest-support.ts";
import { hoursOf, prove } from "./coverage-support.ts";
import { type EarlierHour, insertEarlierHours } from "./earlier-database.ts";

/** The last migration of version 0.2 before a seal kept its looks. */
const BEFORE_LOOKS = 11;
const TODAY = Date.UTC(2026, 10, 20);
const OLD_DAY = TODAY - 5 * DAY_MS;
const at = (hour: number) => TODAY + hour * HOUR_MS;

/** Sealed hours as the earlier version left them: most are good, each of the hours 7 to 12 of today has a kind of damage. */
async function openDamaged() {
  const emulator = await openEmulator({ historyHours: 20, eventsPerSecond: 0.01, lateShare: 0 });
  const events = await oracle(emulator);
  const hours: EarlierHour[] = [];
  for (let startsAt = OLD_DAY; startsAt < at(14); startsAt += HOUR_MS) {
    const held = events.filter(({ timestamp }) => timestamp >= startsAt && timestamp < startsAt + HOUR_MS);
    hours.push({ startsAt, events: held });
  }
  const damage = (hour: number, change: (held: EarlierHour["events"]) => Partial<EarlierHour>) => {
    const index = hours.findIndex(({ startsAt }) => startsAt === at(hour));
    const before = hours[index];
    if (before === undefined || before.events.length < 10) throw new Error(`too few events at ${hour}`);
    hours[index] = { ...before, ...change(before.events) };
  };
  damage(7, () => ({ events: [] }));
  damage(8, (held) => ({ events: held.slice(5) }));
  damage(9, () => ({ upstream: 0 }));
  // A doubled event stands for one that is missing.
  damage(10, ([first, second, ...held]) => {
    if (first === undefined || second === undefined) throw new Error("too few events");
    const double = { ...second, timestamp: second.timestamp - 700, isUnresolved: true };
    return { events: [second, double, ...held.map((event) => ({ ...event }))] };
  });
  damage(11, (held) => ({ events: held.map((event, n) => ({ ...event, isUnresolved: n < 3 })) }));
  damage(12, (held) => ({ upstream: held.length - 4, stored: held.length - 4 }));
  const { url } = await createDatabase02(BEFORE_LOOKS);
  await insertEarlierHours(url, ZONE, hours, NOW - 20 * MINUTE_MS);
  return { emulator, url, events };
}

test("after an upgrade, verify names every damaged hour, and one comparison reopens every hour whose seal does not hold", async () => {
  const { emulator, url, events } = await openDamaged();
  await migrateTo02(url);
  await migrate({ url });
  const database = createDatabase({ url, max: 8, applicationName: "upgraded", onError: () => undefined });
  // The migration does this by the server's clock, for the hours that the platform still has.
  await database.pool.query(
    "update coverage_windows set unresolved_since = case when starts_at > $1::timestamptz - interval '72 hours' then $1::timestamptz end",
    [new Date(NOW)],
  );
  const drop = () => database.close();
  const ingest = await openIngest(emulator, { database: { ...database, url, errors: [], drop } });
  await createRollUpTrendsJob({ database, log: silent }).run({} as never, new AbortController().signal);
  await database.pool.query(
    `insert into rule_metrics (zone_id, rule_id, day, total) values (${ZONE}, '942100', '2026-11-15', 40)`,
  );
  const verify = () =>
    runStoreCommand(
      verifyCommand,
      {
        DATABASE_URL: url,
        EDGE_API_URL: emulator.url,
        EDGE_API_KEY: emulator.accessKey,
        EDGE_SHIELD_ZONES: String(ZONE),
      },
      ["--zone", String(ZONE), "--from", "2026-11-15", "--to", "2026-11-20T14:00"],
      { now: emulator.now() },
    );

  const before = await verify();
  expect(before.code).toBe(1);
  const held = (hour: number) =>
    events.filter(({ timestamp }) => Math.floor(timestamp / HOUR_MS) === at(hour) / HOUR_MS);
  const size = (hour: number) => held(hour).length;
  for (const named of [
    /2026-11-20 07:00 {2}rule \d+: the platform \d+, stored 0\n/,
    /2026-11-20 08:00 {2}rule \d+: the platform \d+, stored \d+\n/,
    `2026-11-20 09:00: its seal 0, stored ${size(9)} (sealed although the platform counted fewer events)`,
    `2026-11-20 10:00: its seal 0, stored 1 (stored with two different times: ${held(10)[1]?.logId})`,
    `2026-11-20 11:00: its seal ${size(11)}, stored ${size(11) - 3} (events without every dimension)`,
    `2026-11-20 12:00: its seal ${size(12) - 4}, stored ${size(12)} (another number of events than at the seal)`,
    "2026-11-15  rule 942100: the platform 40, stored 0",
  ])
    expect(before.out).toMatch(named);
  expect(before.out).not.toMatch(/2026-11-20 (0[0-6]|13):00/);
  const again = ownCommand(`backfill --zone ${ZONE} --from 2026-11-20T07:00:00Z --to 2026-11-20T13:00:00Z`);
  expect(before.out).toContain(`To copy these hours again: ${again}\n`);

  // The first poll resolves the events of hour 11, so its seal holds. The seals of the other damaged hours do not.
  await prove(emulator, ingest);
  const reopened = (await hoursOf(ingest)).filter(({ reopenedAt }) => reopenedAt !== null);
  expect(reopened.map(({ startsAt }) => (startsAt - TODAY) / HOUR_MS)).toEqual([7, 8, 9, 10, 12]);
  const looked = (await hoursOf(ingest)).filter(
    ({ startsAt }) => startsAt < at(7) && startsAt > NOW - 71 * HOUR_MS,
  );
  expect(looked.map(({ looks }) => looks.counts?.at).filter((lookedAt) => lookedAt === undefined)).toEqual(
    [],
  );

  for (let round = 0; round < 4; round++) {
    emulator.advance(16 * MINUTE_MS);
    await prove(emulator, ingest);
  }
  const after = await verify();
  expect(after.out).toContain("No differences.\n");
  expect(after.out).toContain("2026-11-15  rule 942100: the platform 40, stored 0");
  const later = await hoursOf(ingest);
  expect(later.filter(({ startsAt, state }) => startsAt < at(14) && state !== "sealed")).toEqual([]);
  expect(later.filter(({ reopenedAt }) => reopenedAt !== null).length).toBe(5);
  const kept = new Map(later.map(({ startsAt, looks }) => [startsAt, looks.counts?.at]));
  expect(looked.filter(({ startsAt, looks }) => looks.counts?.at !== kept.get(startsAt))).toEqual([]);
});
