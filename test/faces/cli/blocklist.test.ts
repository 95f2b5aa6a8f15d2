import { afterAll, beforeAll, expect } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { coverageWindows } from "#db/schema/coverage.ts";
import { judgedHours } from "#db/schema/sources.ts";
import { verdicts } from "#db/schema/spikes.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { startOfHour, toDay } from "#model/horizon.ts";
import { attackerOf, incidentOf } from "#test/alerts/incident.ts";
import { insertSpike } from "#test/alerts/insert-spike.ts";
import { makeEvent, storeAll } from "#test/detection/trend-support.ts";
import { verdictOf } from "#test/support/stored-verdict.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { testBothWays } from "./both-ways.ts";

const NOW = Date.parse("2026-11-21T14:30:00Z");
const ATTACKER = "203.0.113.9";
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
  const { db } = database;
  await ensurePartitions(database, [toDay(NOW)]);
  const openedAt = new Date(NOW - HOUR_MS);
  const startsAt = new Date(startOfHour(NOW));
  await db
    .insert(coverageWindows)
    .values({ zoneId: 101, startsAt, state: "open", searchedThrough: new Date(NOW) });
  await db
    .insert(judgedHours)
    .values({ zoneId: 101, startsAt, rulesFrom: startsAt, rulesThrough: new Date(NOW) });
  const attacker = { ...attackerOf(ATTACKER), since: openedAt.getTime() / MINUTE_MS };
  const spikeId = await insertSpike(db, { openedAt, closedAt: openedAt, ...incidentOf(attacker) });
  const judgedAt = openedAt.getTime() + MINUTE_MS;
  const [verdict, at] = [verdictOf({ judgedAt }), new Date(judgedAt)];
  await db
    .insert(verdicts)
    .values({ spikeId, zoneId: 101, look: "first", said: "attack", judgedAt: at, verdict });
  await storeAll(database, [makeEvent({ logId: "a", occurredAt: openedAt.getTime(), ip: ATTACKER })]);
});
afterAll(() => database.drop());

const bothWays = testBothWays(await loadSubject("blocklist"), () => ({ database, now: NOW }));

bothWays.both("blocklist prints each form, and a dry run in words", async ({ run }) => {
  const lines = async (...args: string[]) => (await run("--zone", "101", ...args)).out.split("\n");
  expect((await lines())[1]).toMatch(/^203\.0\.113\.9 # until 2026-11-22T13:30:00\.000Z, attack, odds 0\.93/);
  expect(await lines("--form", "nginx")).toContainEqual(expect.stringMatching(/^deny 203\.0\.113\.9; # /));
  expect(await lines("--form", "ipset")).toContain("swap longwatch-101-4-new longwatch-101-4");
  const { out } = await run("--zone", "101", "--form", "json");
  expect(JSON.parse(out)).toMatchObject({ zone: 101, items: [{ value: ATTACKER }] });
  expect(await lines("--dry-run")).toEqual([
    expect.stringMatching(/^2026-11-14 14:30.* to 2026-11-21 14:30.* UTC/),
    "would have stopped 0 of 1 hostile requests, 0 of 0 of unknown senders, 0 of 0 of machines and 0 of 0 of visitors.",
    "The list of now has 1 entry.",
    "",
  ]);
});

bothWays("blocklist refuses a form that does not exist and an unknown zone", async ({ run }) => {
  const form = await run("--zone", "101", "--form", "pf");
  expect([form.code, form.err]).toEqual([
    2,
    expect.stringContaining('--form "pf" must be one of text, json, ipset, nginx, access-list'),
  ]);
  const zone = await run("--zone", "999");
  expect([zone.code, zone.err]).toEqual([2, expect.stringContaining('--zone "999" must be a shield zone')]);
});
