import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { readServerFacts } from "#db/health/server-facts.ts";
import { migrate } from "#db/migrate.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { SESSION_SETTINGS } from "#lib/sql-session.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { createAlertWorld } from "../alerts/alert-world.ts";
import { NOW } from "../alerts/support.ts";
import { createDetectWorld, DAYS, eventsOf, START } from "../detection/detect-support.ts";
import { createBackend } from "../store/queue/support/backend.ts";
import { recorder } from "../store/queue/support/recorder.ts";
import { openJobQueue } from "../store/queue/support/store.ts";
import { createTestDatabase } from "../support/database.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

/** A value that every setting may have somewhere, and that the code does not expect. */
const FOREIGN: Record<keyof typeof SESSION_SETTINGS, string> = {
  DateStyle: "German",
  IntervalStyle: "iso_8601",
  TimeZone: "Asia/Kathmandu",
  bytea_output: "escape",
  extra_float_digits: "-2",
  search_path: "elsewhere",
  standard_conforming_strings: "off",
  default_transaction_isolation: "serializable",
  default_transaction_deferrable: "on",
  transform_null_equals: "on",
  array_nulls: "off",
};

async function makeForeign(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const [name, value] of Object.entries(FOREIGN))
      await client.query(`alter database ${new URL(url).pathname.slice(1)} set ${name} = '${value}'`);
  } finally {
    await client.end();
  }
}

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
  await makeForeign(database.url);
});

afterAll(() => database.drop());

test("a session of a pool has the settings of the code, whatever the database sets", async () => {
  const names = Object.keys(SESSION_SETTINGS);
  const { rows } = await database.pool.query<{ name: string; setting: string; reset: string }>(
    "select name, setting, reset_val as reset from pg_settings where name = any($1)",
    [names],
  );
  expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual(SESSION_SETTINGS);
  expect(rows.filter(({ setting, reset }) => setting === reset)).toEqual([]);
  expect((await readServerFacts(database.db)).differing).toEqual([]);
});

test("the doctor's facts name a setting that the session does not keep", async () => {
  const forgetful = createDatabase({
    url: database.url,
    max: 1,
    applicationName: "longwatch test",
    onError: () => undefined,
  });
  onTestFinished(() => forgetful.close());
  // As a pooler does that hands the session to somebody else.
  await forgetful.pool.query("discard all");
  const { differing } = await readServerFacts(forgetful.db);
  expect(differing).toHaveLength(Object.keys(SESSION_SETTINGS).length);
});

test("a spike opens and raises an alert in a database with foreign settings", async () => {
  await ensurePartitions(database, DAYS);
  const world = createDetectWorld(database);
  await world.keep(eventsOf([40, 60, 50], START + 5, { ruleId: "942100" }));
  await world.tickThrough(START, START + 30);
  expect(await world.readSpikes()).toHaveLength(1);

  const alerting = createAlertWorld(database);
  await alerting.runAt(START + 31 - NOW / MINUTE_MS);
  expect(await alerting.alerts()).toMatchObject([{ state: "firing", ruleId: "942100" }]);
});

test("an empty database with foreign settings is migrated, and its queue runs jobs", async () => {
  const empty = await createTestDatabase();
  onTestFinished(() => empty.drop());
  await makeForeign(empty.url);
  await migrate({ url: empty.url });
  const { job, runs } = recorder("foreign");
  const queue = openJobQueue(createBackend("postgres", empty.url), [job]);
  queue.startWorkers();
  await queue.enqueue(job.name, { zoneId: 101 }, "tick_a");
  await expect.poll(() => runs, { timeout: 20_000 }).toEqual([101]);
  const client = new pg.Client({ connectionString: empty.url });
  await client.connect();
  onTestFinished(() => client.end());
  const { rows } = await client.query("select to_regclass('public.waf_events') is not null as public");
  expect(rows).toEqual([{ public: true }]);
});
