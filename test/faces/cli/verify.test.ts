import { afterAll, beforeAll, beforeEach, expect, inject, onTestFinished, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { createEmulator, type Emulator } from "#emulator/emulator.ts";
import { verifyCommand } from "#faces/cli/verify/verify.ts";
import { createRollUpTrendsJob } from "#jobs/detection/roll-up-trends.ts";
import { ownCommand } from "#lib/process.ts";
import { HOUR_MS } from "#lib/units.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { NOW, openEmulator, oracle } from "../../emulator/support.ts";
import { createIngestJobs } from "../../ingest/ingest-jobs.ts";
import { openChangingPlatform, silent } from "../../ingest/ingest-support.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { type Ran, runStoreCommand } from "./run-store-command.ts";

let emulator: Emulator;
/** Five hours, kept as the service keeps them: searched, listed, rolled up. */
let kept: TestDatabase;
/** The copy that the running test changes. */
let database: MigratedDatabase;
/** The address of the database that the command reads. */
let at: string;

beforeAll(async () => {
  const clock = () => NOW;
  emulator = await createEmulator({ historyHours: 5, eventsPerSecond: 0.05, clock });
  kept = await createTestDatabase(inject("migratedTemplate"));
  const onError = () => undefined;
  const own = createDatabase({ url: kept.url, max: 4, applicationName: "kept hours", onError });
  const { url, accessKey } = emulator;
  const observer = { pageStored: () => undefined };
  const jobs = createIngestJobs({ database: own, url, accessKey, clock, observer });
  await jobs.poll();
  await jobs.walk();
  await jobs.close();
  const rollUp = createRollUpTrendsJob({ database: own, log: silent });
  await rollUp.run({} as never, new AbortController().signal);
  // Postgres copies only a database that has no connection.
  await own.close();
});

afterAll(async () => {
  await emulator.close();
  await kept.drop();
});

beforeEach(() => {
  at = kept.url;
});

/** Opens a database that the test changes. */
async function open(template?: string): Promise<void> {
  const opened = await createMigratedDatabase(template);
  onTestFinished(() => opened.drop());
  database = opened;
  at = opened.url;
}

const copyKept = () => open(new URL(kept.url).pathname.slice(1));

function run(platform: Emulator | null, args: string, { now = NOW, url = platform?.url } = {}): Promise<Ran> {
  const settings: Record<string, string> =
    platform === null
      ? {}
      : {
          EDGE_API_URL: url ?? "",
          EDGE_API_KEY: platform.accessKey,
          EDGE_SHIELD_ZONES: "101",
          EDGE_REQUESTS_PER_SECOND: "1000",
        };
  return runStoreCommand(verifyCommand, { DATABASE_URL: at, ...settings }, args.split(" "), {
    now,
  });
}

const SPAN = "--zone 101 --from 2026-11-20T10:00 --to now";

test("a complete archive has no difference, with exit code 0 and no other output", async () => {
  const { code, out, err } = await run(emulator, `${SPAN} --ids`);
  const events = await oracle(emulator);
  const settled = events.filter(({ timestamp }) => timestamp < Date.UTC(2026, 10, 20, 15));
  const cells = new Set(
    settled.map(({ ruleId, timestamp }) => `${timestamp - (timestamp % HOUR_MS)} ${ruleId}`),
  );
  const sampled = settled.filter(({ timestamp }) => [10, 12, 14].includes(new Date(timestamp).getUTCHours()));
  expect(out).toBe(
    [
      "zone 101, 2026-11-20 10:00 to 2026-11-20 16:00 UTC",
      `  platform counts   5 hours, ${cells.size} counts of a rule in an hour: no difference`,
      "    after 2026-11-20 15:00 UTC: not compared, events may still appear",
      `  event ids         3 hours, ${sampled.length} ids: no difference`,
      "    after 2026-11-20 15:00 UTC: not compared, events may still appear",
      "  daily counts      0 counts of a rule on a sealed day: none higher on the platform",
      "  hour counts       6 hours: no difference",
      "  seals             0 sealed hours: no difference",
      "  roll-ups          the buckets of 1 day: no difference",
      "  sources           the counted hours of the source series: no difference",
      "  raw records       0 events of the list: no difference",
      "No differences.",
      "",
    ].join("\n"),
  );
  expect(code).toBe(0);
  // The command ends before a log is opened.
  expect(err).toBe("");
});

test("every kind of difference is reported with its numbers, with exit code 1", async () => {
  await copyKept();
  const { rows } = await database.pool.query<{ log_id: string; rule_id: string; minute: Date }>(
    `delete from waf_events where log_id = (
       select log_id from waf_events where occurred_at < '2026-11-20 11:00Z' order by occurred_at limit 1)
     returning log_id, rule_id, date_trunc('minute', occurred_at) as minute`,
  );
  const gone = rows[0];
  await database.pool.query(
    "update rule_buckets set blocked = logged, logged = blocked where blocked <> logged and width = 3600 and starts_at = '2026-11-20 12:00Z'",
  );
  await database.pool.query(
    "update waf_events set route = 'list' where occurred_at >= '2026-11-20 13:00Z' and occurred_at < '2026-11-20 14:00Z'",
  );
  await database.pool.query("delete from raw_blocks");
  await database.pool.query(
    "update coverage_windows set stored_count = stored_count + 1000 where starts_at = '2026-11-20 14:00Z'",
  );
  const { code, out } = await run(emulator, `${SPAN} --ids`);
  expect(code).toBe(1);
  const rule = gone?.rule_id ?? "";
  expect(out).toMatch(new RegExp(`2026-11-20 10:00 {2}rule ${rule}: the platform \\d+, stored \\d+\n`));
  expect(out).toContain(`(missing ${gone?.log_id})`);
  expect(out).toMatch(/2026-11-20 14:00: events \d+, the hour's count 1,\d{3}\n/);
  expect(out).toMatch(
    /2026-11-20 12:00 {2}rule \S+: events \d+, the bucket \d+ \(hour; its counts per action differ\)/,
  );
  expect(out).toMatch(new RegExp(`rule ${rule}: events \\d+, the bucket \\d+ \\(minute\\)`));
  expect(out).toMatch(
    /2026-11-20 13:00: events of the list \d+, records 0 \(without [^,]+, [^,]+, [^,]+ and \d+ more\)/,
  );
  const copied = ownCommand("backfill --zone 101 --from 2026-11-20T10:00:00Z --to 2026-11-20T11:00:00Z");
  expect(out).toMatch(/\n\d+ differences\.\n[^\n]+\n$/);
  expect(out.split("\n").at(-2)).toBe(`To copy these hours again: ${copied}`);
});

test("events with another value are named by field and need no backfill, and withdrawn events are a note", async () => {
  await copyKept();
  const { rows } = await database.pool.query<{ log_id: string }>(
    "select log_id from waf_events where occurred_at < '2026-11-20 11:00Z' order by occurred_at limit 4",
  );
  const [first, second, erased, masked] = rows.map(({ log_id }) => log_id);
  const change = (values: string, id: string | undefined) =>
    database.pool.query(`update waf_events set ${values} where log_id = $1`, [id]);
  await change("url = '/false', country = ''", first);
  await change("ip = '192.0.2.66'", second);
  await change("ip = 'erased', url = '', ua = 'another'", erased);
  await change("ip = '203.0.113.*'", masked);
  await database.pool.query(
    `with gone as (
       insert into waf_events (zone_id, occurred_at, log_id, route, feature, rule_id)
       select zone_id, occurred_at, 'gone', route, feature, rule_id from waf_events where log_id = $1 returning *)
     insert into event_revisions (zone_id, occurred_at, log_id, field, seen_at, accepted_at)
     select zone_id, occurred_at, log_id, 'withdrawn', now(), now() from gone`,
    [first],
  );
  const { code, out } = await run(emulator, `${SPAN} --ids`);
  expect(code).toBe(1);
  const ids = out.slice(out.indexOf("  event ids "), out.indexOf("  daily counts "));
  expect(ids).toMatch(/ids: 1 difference\n/);
  expect(ids).toContain(`(another address of ${second}; another URL of ${first})`);
  expect(ids).toContain("    2026-11-20 10:00: withdrawn by the platform: gone\n");
  // The hour's only other difference of counts would be the withdrawn event.
  expect(out).toMatch(/platform counts [^\n]+: no difference\n/);
  expect(out).toContain("    2026-11-20 10:00: 1 stored event withdrawn by the platform, nothing to do\n");
  expect(out).not.toContain("To copy these hours again");
  expect(out).toContain("Other values need no command: the service searches the last 72 hours again");
});

test("a sealed hour whose events changed is named, with the command that copies it again", async () => {
  await copyKept();
  await database.pool.query(
    "update coverage_windows set state = 'sealed', sealed_at = now(), evidence = '{}' where starts_at = '2026-11-20 11:00Z'",
  );
  expect((await run(null, SPAN)).out).toContain("  seals             1 sealed hour: no difference\n");
  const { rows } = await database.pool.query<{ stored: number }>(
    "select stored_count as stored from coverage_windows where starts_at = '2026-11-20 11:00Z'",
  );
  const stored = rows[0]?.stored ?? 0;
  await database.pool.query(
    `delete from waf_events where log_id = (select log_id from waf_events
       where occurred_at >= '2026-11-20 11:00Z' and occurred_at < '2026-11-20 12:00Z' limit 1)`,
  );
  const { code, out } = await run(null, SPAN);
  expect(code).toBe(1);
  expect(out).toContain(
    `  seals             1 sealed hour: 1 difference\n    2026-11-20 11:00: its seal ${stored}, stored ${stored - 1} (another number of events than at the seal)\n`,
  );
  const command = ownCommand("backfill --zone 101 --from 2026-11-20T11:00:00Z --to 2026-11-20T12:00:00Z");
  expect(out).toMatch(/\n\d+ differences\.\n[^\n]+\n$/);
  expect(out.split("\n").at(-2)).toBe(`To copy these hours again: ${command}`);
  const { rows: doubled } = await database.pool.query<{ log_id: string }>(
    `insert into waf_events (zone_id, occurred_at, log_id, route, feature, rule_id)
     select zone_id, occurred_at + interval '1 ms', log_id, route, feature, rule_id from waf_events
     where occurred_at >= '2026-11-20 11:00Z' and occurred_at < '2026-11-20 11:59Z' limit 1 returning log_id`,
  );
  expect((await run(null, SPAN)).out).toContain(
    `2026-11-20 11:00: its seal 0, stored 1 (stored with two different times: ${doubled[0]?.log_id})\n`,
  );
});

test("hostile rules are printed harmless, in JSON they stay what they are", async () => {
  await copyKept();
  await database.pool.query(
    "update waf_events set rule_id = $1 where log_id in (select log_id from waf_events where occurred_at < '2026-11-20 11:00Z' limit 1)",
    ["\u001b[2J\u202eevil\nrule"],
  );
  const { code, out } = await run(emulator, SPAN);
  expect(code).toBe(1);
  expect(out).toContain("2026-11-20 10:00  rule \\u001b[2J\\u202eevil\\u000arule: the platform 0, stored 1");
  // oxlint-disable-next-line no-control-regex
  expect(out).not.toMatch(/[\u001b\u202e]/);
  const json = await run(emulator, `${SPAN} --json`);
  expect(json.out).not.toContain("\u202e");
  const { checks } = JSON.parse(json.out) as {
    checks: { name: string; differences: { ruleId: string }[] }[];
  };
  const [counts] = checks.filter(({ name }) => name === "platform counts");
  expect(counts?.differences.map(({ ruleId }) => ruleId)).toContain("\u001b[2J\u202eevil\nrule");
});

test("data that has left the platform is still compared with itself", async () => {
  await copyKept();
  await database.pool.query(
    "update coverage_windows set stored_count = 0 where starts_at = '2026-11-20 11:00Z'",
  );
  const { code, out } = await run(emulator, "--zone 101 --from 2026-11-20T10:00 --to 2026-11-20T14:00", {
    now: NOW + 100 * HOUR_MS,
  });
  expect(code).toBe(1);
  expect(out).toContain(
    "platform counts   0 hours, 0 counts of a rule in an hour: no difference\n    before 2026-11-21 20:00 UTC",
  );
  expect(out).toMatch(/2026-11-20 11:00: events \d+, the hour's count 0\n/);
});

test("a platform that refuses or counts nonsense is a check that could not be made", async () => {
  const url = await openChangingPlatform(emulator, (body) => body.replaceAll('"count":', '"count":1'));
  const nonsense = await run(emulator, SPAN, { url });
  expect(nonsense).toMatchObject({ code: 1, out: expect.stringContaining("do not add up to its count") });
  const refusing = await openEmulator({ historyHours: 0 });
  refusing.addFault({ kind: "unauthorized" });
  const { code, out } = await run(refusing, SPAN);
  expect(code).toBe(1);
  expect(out).toContain("platform counts   check failed: EDGE_UNAUTHORIZED");
  expect(out).toContain("hour counts       6 hours: no difference");
  expect(out).toContain("0 differences, 1 check failed.");
});

test("without a platform's address, and with buckets still to be rolled up, it says what it left out", async () => {
  await copyKept();
  await database.pool.query(
    "insert into dirty_buckets (zone_id, rule_id, minute) select zone_id, rule_id, starts_at from rule_buckets where width = 60",
  );
  await database.pool.query("update rule_buckets set total = total + 1, logged = logged + 1");
  const { code, out } = await run(null, SPAN);
  expect(code).toBe(0);
  expect(out).toContain("the platform was not asked, because EDGE_API_URL is not set");
  expect(out).toMatch(/\n {4}\d+ stale buckets not compared: the roll-up will update them\n/);
});

test("a sealed day of which the platform counted more is named, and is no difference", async () => {
  await open();
  for (const day of ["2026-11-18", "2026-11-19"])
    await database.pool.query(
      `insert into coverage_windows (zone_id, starts_at, state, sealed_at, evidence)
       select 101, $1::timestamptz + n * interval '1 hour', 'sealed', now(), '{}' from generate_series(0, $2::integer) as n`,
      [`${day}T00:00Z`, day === "2026-11-18" ? 23 : 22],
    );
  await database.pool.query(
    `insert into rule_metrics (zone_id, rule_id, day, total) values (101, '942100', '2026-11-18', 7),
       (101, E'94\u001b', '2026-11-18', 1200), (101, '941100', '2026-11-18', 0), (101, '942100', '2026-11-19', 9)`,
  );
  const { code, out } = await run(null, "--zone 101 --from 2026-11-18 --to 2026-11-20");
  expect(code).toBe(0);
  expect(out).toContain(
    [
      "  daily counts      3 counts of a rule on a sealed day: 2 higher on the platform",
      "    2026-11-18  rule 94\\u001b: the platform 1,200, stored 0 (the platform's daily counts may be inexact)",
      "    2026-11-18  rule 942100: the platform 7, stored 0 (the platform's daily counts may be inexact)\n",
    ].join("\n"),
  );
});

test("a span of which nothing is stored is a mistake, however long it is", async () => {
  for (const span of ["--zone 7 --from -24h --to now", "--zone 101 --from 2001-01-01 --to 2002-01-01"])
    expect(await run(null, span)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/has stored data|with stored data in the span/),
    });
  expect((await run(null, "--zone 101 --from 2001-01-01 --to 2286-01-01")).out).toContain(
    "zone 101, 2026-11-17 15:00 to 2026-11-20 16:00 UTC\n",
  );
});

test("every mistake is reported at once", async () => {
  const { code, out, err } = await run(null, "--from 12 --to x --deep");
  expect({ code, out }).toEqual({ code: 2, out: "" });
  for (const named of ['"--deep" is not', "--zone is missing", '--from "12" must be', '--to "x" must be'])
    expect(err).toContain(named);
});

test("it explains itself with examples", async () => {
  const { code, out } = await run(null, "--help");
  expect(code).toBe(0);
  expect(out).toContain("Examples:\n  npm run -s longwatch -- verify");
});
