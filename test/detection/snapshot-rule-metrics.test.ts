import { sql } from "drizzle-orm";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { readDaysBefore } from "#db/detection/rule-metrics.ts";
import { ruleMetrics, ruleSnapshots } from "#db/schema/rules.ts";
import { leases } from "#db/schema/service.ts";
import type { EmulatorOptions } from "#emulator/emulator.ts";
import type { FaultInput } from "#emulator/faults.ts";
import {
  createSnapshotRuleMetricsJob,
  type SnapshotRuleMetricsDeps,
} from "#jobs/detection/snapshot-rule-metrics.ts";
import { createSecret } from "#lib/secret.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { bodyOf, call, NOW, openEmulator } from "../emulator/support.ts";
import { startLyingPlatform } from "../support/liar/lying-platform.ts";

const RULES = ["913100", "920350", "930130", "932100", "941100", "942100"];

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.pool.query("truncate rule_metrics, rule_snapshots, rule_buckets, coverage_windows, leases");
});

async function openPlatform(options: EmulatorOptions = {}) {
  const emulator = await openEmulator({ historyHours: 1, eventsPerSecond: 0.02, ...options });
  const accessKey = createSecret(emulator.accessKey);
  const transport = createEdgeTransport({ baseUrl: emulator.url, accessKey, maxAttempts: 1 });
  onTestFinished(() => transport.close());
  const countAsks = async () => {
    const shown = await bodyOf<unknown>(call(emulator, "/_emulator/requests"));
    return JSON.stringify(shown).split("/waf-rule/").length - 1;
  };
  return { edge: createEdgeClient(transport), countAsks };
}

/** Days with events of the rule, as the roll-up leaves them. */
async function see(ruleId: string, daysAgo: readonly number[] = [0], { zoneId = 101, total = 5 } = {}) {
  for (const days of daysAgo)
    await database.pool.query(
      `insert into rule_buckets (zone_id, rule_id, width, starts_at, total, blocked)
       values ($1, $2, 86400, date_trunc('day', to_timestamp($3)), $4, $4)`,
      [zoneId, ruleId, (NOW - days * DAY_MS) / 1_000, total],
    );
}

function run(
  over: Partial<SnapshotRuleMetricsDeps> & Pick<SnapshotRuleMetricsDeps, "edge">,
  signal?: AbortSignal,
) {
  const log = pino({ level: "silent" });
  const deps = { database, clock: () => NOW, log, zoneIds: [101], ...over };
  return createSnapshotRuleMetricsJob(deps).run({} as never, signal ?? new AbortController().signal);
}

const metrics = () => database.db.select().from(ruleMetrics).orderBy(ruleMetrics.ruleId, ruleMetrics.day);
const snapshots = () => database.db.select().from(ruleSnapshots).orderBy(ruleSnapshots.ruleId);

test.each(["dd-MM-yyyy", "iso"] as const)(
  "every rule of the last 28 days is asked about once a day, and its days are kept (keys in %s)",
  async (metricDays) => {
    const { edge, countAsks } = await openPlatform({ switches: { metricDays } });
    await see("942100", [0, 1, 2]);
    await see("941100", [27]);
    await see("913100", [40]);
    await see("", [0]);
    await see("932100", [0], { zoneId: 7 });
    await run({ edge });
    await run({ edge });
    expect(await countAsks()).toBe(2);
    const kept = await metrics();
    expect(new Set(kept.map(({ ruleId }) => ruleId))).toEqual(new Set(["941100", "942100"]));
    expect(kept.filter(({ ruleId }) => ruleId === "942100")).toHaveLength(28);
    const { data } = await edge.getRuleMetrics({ shieldZoneId: 101, ruleId: "942100" });
    const totals = kept.filter(({ ruleId }) => ruleId === "942100").map(({ total }) => total);
    expect(totals.reduce((a, b) => a + b, 0)).toBe(data?.totalTriggers);
    expect(kept.at(-1)?.day).toBe("2026-11-20");

    // A rule seen for the first time is asked about at the next run, the others a day later.
    await see("932100");
    await run({ edge, clock: () => NOW + 5 * MINUTE_MS });
    await run({ edge, clock: () => NOW + DAY_MS - 1 });
    expect(await countAsks()).toBe(4);
    await run({ edge, clock: () => NOW + DAY_MS });
    expect(await countAsks()).toBe(6);
    expect((await metrics()).filter(({ ruleId }) => ruleId === "942100").at(-1)?.day).toBe("2026-11-20");
  },
);

test("runners at the same time ask about each rule once between them", async () => {
  const { edge, countAsks } = await openPlatform();
  for (const ruleId of RULES) await see(ruleId);
  await Promise.all(Array.from({ length: 5 }, () => run({ edge })));
  await run({ edge });
  expect(await countAsks()).toBe(RULES.length);
  expect((await snapshots()).map(({ ruleId }) => ruleId)).toEqual(RULES);
});

test("a run asks no more than its share, and the next one goes on where it ended", async () => {
  const { edge, countAsks } = await openPlatform();
  for (const ruleId of RULES) await see(ruleId);
  await run({ edge, rulesPerRun: 4 });
  expect(await countAsks()).toBe(4);
  await run({ edge, rulesPerRun: 4 });
  expect((await snapshots()).map(({ ruleId }) => ruleId)).toEqual(RULES);
});

test("a runner that is killed leaves whole rules and nothing else; the next one does the rest", async () => {
  const { edge } = await openPlatform();
  for (const ruleId of RULES) await see(ruleId);
  const doomed = createDatabase({ url: database.url, max: 3, applicationName: "doomed", onError: () => {} });
  let asked = 0;
  const dying: SnapshotRuleMetricsDeps["edge"] = {
    getRuleMetrics: async (...params) => {
      asked += 1;
      if (asked === 6) await doomed.close();
      return edge.getRuleMetrics(...params);
    },
  };
  await expect(run({ edge: dying, database: doomed })).rejects.toThrow(/pool|Failed query/);
  const before = await snapshots();
  expect(before.length).toBeGreaterThan(0);
  expect(before.length).toBeLessThan(RULES.length);
  const days = await metrics();
  for (const { ruleId } of before) expect(days.filter((day) => day.ruleId === ruleId)).toHaveLength(28);
  expect(days).toHaveLength(28 * before.length);

  // The lease of a killed process stays taken until it expires.
  await run({ edge });
  expect(await snapshots()).toEqual(before);
  await database.db.update(leases).set({ expiresAt: sql`now() - interval '1 second'` });
  await run({ edge });
  expect((await snapshots()).map(({ ruleId }) => ruleId)).toEqual(RULES);
  expect(await metrics()).toHaveLength(28 * RULES.length);
});

const operation = "rule-metrics" as const;
test.each<{ name: string; fault: FaultInput; code: string; againAfterMs: number }>([
  {
    name: "unavailable",
    fault: { kind: "status", operation, status: 503 },
    code: "EDGE_UNAVAILABLE",
    againAfterMs: 15 * MINUTE_MS,
  },
  {
    name: "not there",
    fault: { kind: "status", operation, status: 404 },
    code: "EDGE_NOT_FOUND",
    againAfterMs: DAY_MS,
  },
  {
    name: "not in the plan",
    fault: { kind: "envelope", operation },
    code: "EDGE_PLAN",
    againAfterMs: HOUR_MS,
  },
])("$name: noted, and asked again in time", async ({ fault, code, againAfterMs }) => {
  const { edge, countAsks } = await openPlatform({ faults: [fault] });
  await see("942100");
  await run({ edge });
  expect(await snapshots()).toMatchObject([{ errorCode: code, dueAt: new Date(NOW + againAfterMs) }]);
  await run({ edge, clock: () => NOW + againAfterMs - 1 });
  expect(await countAsks()).toBe(1);
  await run({ edge, clock: () => NOW + againAfterMs });
  expect(await countAsks()).toBe(2);
  expect(await metrics()).toEqual([]);
});

test("a zone that the platform asks to wait stays due, and the rules of the other zones are asked about", async () => {
  const emulator = await openEmulator({ zones: [101, 102], historyHours: 1, eventsPerSecond: 0.02 });
  const liar = await startLyingPlatform({ url: emulator.url, now: () => NOW, isWitnessed: false });
  onTestFinished(() => liar.close());
  const accessKey = createSecret(emulator.accessKey);
  const transport = createEdgeTransport({ baseUrl: liar.url, accessKey });
  onTestFinished(() => transport.close());
  for (const ruleId of RULES) for (const zoneId of [101, 102]) await see(ruleId, [0], { zoneId });
  liar.tell({ kind: "refuses", routes: ["metrics"], zones: [101] });
  await run({ edge: createEdgeClient(transport), zoneIds: [101, 102] });
  expect((await snapshots()).map(({ zoneId }) => zoneId)).toEqual(RULES.map(() => 102));
  expect(liar.requests().get(102)?.metrics).toBe(RULES.length);
  expect(liar.requests().get(101)?.metrics).toBeLessThanOrEqual(4);
});

test("asked for a pause, everything of the zone stays due; refused, no other rule of the zone is asked about", async () => {
  const pausing = await openPlatform({ faults: [{ kind: "rate-limit", operation }] });
  for (const ruleId of RULES) await see(ruleId);
  await run({ edge: pausing.edge });
  expect(await snapshots()).toEqual([]);
  expect(await pausing.countAsks()).toBeLessThanOrEqual(4);

  const refusing = await openPlatform({ faults: [{ kind: "unauthorized", operation }] });
  await run({ edge: refusing.edge });
  expect(await refusing.countAsks()).toBeLessThanOrEqual(4);
  expect(new Set((await snapshots()).map(({ errorCode }) => errorCode))).toEqual(
    new Set(["EDGE_UNAUTHORIZED"]),
  );
});

test("a sealed day of which the platform counts more is named in a warning; an unsealed one is not", async () => {
  const { edge } = await openPlatform({ historyHours: 72 });
  await see("942100", [1, 2]);
  for (const [daysAgo, state] of [
    [1, "sealed"],
    [2, "open"],
  ] as const)
    await database.pool.query(
      `insert into coverage_windows (zone_id, starts_at, state, searched_through, sealed_at, evidence)
       select 101, date_trunc('day', to_timestamp($1)) + n * interval '1 hour', $2,
         date_trunc('day', to_timestamp($1)) + (n + 1) * interval '1 hour', now(), '{}' from generate_series(0, 23) as n`,
      [(NOW - daysAgo * DAY_MS) / 1_000, state],
    );
  const said: unknown[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void said.push(JSON.parse(line)) });
  await run({ edge, log });
  const platform = (await metrics()).find(({ day }) => day === "2026-11-19")?.total ?? 0;
  expect(platform).toBeGreaterThan(5);
  expect(said).toMatchObject([
    {
      zoneId: 101,
      ruleId: "942100",
      day: "2026-11-19",
      stored: 5,
      platform,
      msg: expect.stringContaining("counted more"),
    },
  ]);
});

test("only days that ended before the zone's own history stand in for it", async () => {
  const { edge } = await openPlatform();
  await see("942100", [0, 1, 2]);
  await run({ edge });
  await database.pool.query(
    "insert into coverage_windows (zone_id, starts_at, state) values (101, '2026-11-18 12:00Z', 'open')",
  );
  const [before] = await readDaysBefore(database.db, [{ zoneId: 101, ruleId: "942100" }]);
  const expected = (await metrics()).filter(({ day }) => day < "2026-11-18").map(({ total }) => total);
  expect(before?.totals).toEqual(expected);
  expect(expected).toHaveLength(25);
});
