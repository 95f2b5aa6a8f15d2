import { afterAll, beforeAll, expect } from "vitest";
import { coverageWindows } from "#db/schema/coverage.ts";
import { ruleBuckets } from "#db/schema/rules.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { HOUR_MS } from "#lib/units.ts";
import { insertSpike } from "../../alerts/insert-spike.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { testBothWays } from "./both-ways.ts";

const rulesCommand = await loadSubject("rules");
const spikesCommand = await loadSubject("spikes");
const trendsCommand = await loadSubject("trends");

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const HOUR = NOW - (NOW % HOUR_MS);
let database: MigratedDatabase;
let spike = 0;

beforeAll(async () => {
  database = await createMigratedDatabase();
  const { db } = database;
  await db
    .insert(coverageWindows)
    .values({ zoneId: 101, startsAt: new Date(HOUR), searchedThrough: new Date(NOW) });
  for (const [ruleId, total] of [
    ["942100", 1_200],
    ["\u001b[31m", 7],
  ] as const)
    for (const width of [60, 3_600])
      await db
        .insert(ruleBuckets)
        .values({ zoneId: 101, ruleId, width, startsAt: new Date(HOUR), total, blocked: total });
  spike = await insertSpike(db, { zoneId: 101, ruleId: "942100", openedAt: new Date(HOUR) });
});
afterAll(() => database.drop());

const testWays = testBothWays(rulesCommand, () => ({ database, now: NOW }), {
  spikes: spikesCommand,
  trends: trendsCommand,
});

testWays("rules list ranks rules and shows no control character", async ({ run }) => {
  const { out } = await run("list");
  expect(out).toMatch(/^ZONE +RULE +EVENTS +USUAL .*\n101 +942100 +1,200 .* #\d+ /);
  expect(out).not.toContain("\u001b");
  const first = JSON.parse((await run("list", "--limit", "1", "--points", "4", "--json")).out) as object;
  expect(first).toMatchObject({
    items: [{ ruleId: "942100", total: 1_200 }],
    next: expect.any(String),
    from: expect.any(String),
  });
});

testWays.both("rules series, replay and facts answer for one rule", async ({ run }) => {
  const rule = ["--zone", "101", "--rule", "942100"];
  expect((await run("series", ...rule, "--from", "-2h")).out).toMatch(/2026-11-20 15:00 +1,200 /);
  const replayed = await run("replay", ...rule, "--z", "5", "--days", "1");
  expect(replayed.out).toMatch(/^In force, z .* alerts?\n[^]*\nReplayed, z 5 and floor [^]*\n {6}z: 5 #/);
  expect((await run("facts", ...rule)).out).toBe("No daily count and no recommendation is stored.\n");
});

testWays.both("trends show counts events with the coverage of each bucket", async ({ run }) => {
  expect((await run("trends", "show", "--zone", "101", "--from", "-2h")).out).toMatch(
    /2026-11-20 15:00 +1,207 +1,207 +0 +0 +0 +open\n/,
  );
});

testWays.both("spikes list and show name the rule and the state", async ({ run }) => {
  expect((await run("spikes", "list", "--state", "open")).out).toMatch(/#\d+ +101 +942100 .* open /);
  expect((await run("spikes", "list", "--state", "closed")).out).toBe("No spike matches.\n");
  expect((await run("spikes", "show", `#${spike}`)).out).toContain("zone 101, rule 942100");
  expect(await run("spikes", "show", "999")).toMatchObject({
    code: 1,
    err: expect.stringContaining("no spike 999"),
  });
});

testWays("every mistake is named", async ({ run }) => {
  const { code, err } = await run("replay", "--zone", "x", "--z", "99", "--days", "0.5");
  expect(code).toBe(2);
  for (const flag of ["--zone", "--rule", "--z ", "--days"]) expect(err).toContain(flag);
  const late = await run(
    "series",
    "--zone",
    "101",
    "--rule",
    "942100",
    "--from",
    "2026-11-20",
    "--to",
    "2026-11-19",
  );
  expect(late).toMatchObject({ code: 2, err: expect.stringContaining("--to") });
});
