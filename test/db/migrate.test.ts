import { readMigrationFiles } from "drizzle-orm/migrator";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { migrate } from "#db/migrate.ts";
import { createTestDatabase } from "../support/database.ts";

const MIGRATIONS = readMigrationFiles({ migrationsFolder: "migrations" }).length;

const TABLES = [
  "advice",
  "alert_transitions",
  "alerts",
  "api_keys",
  "archive_files",
  "audit_entries",
  "changed_minutes",
  "channel_states",
  "condition_minutes",
  "condition_zones",
  "coverage_windows",
  "custom_conditions",
  "differing_cells",
  "dirty_buckets",
  "erasures",
  "event_aliases",
  "event_revisions",
  "exclusions",
  "forward_cursors",
  "forward_destinations",
  "forward_hours",
  "forward_receipts",
  "forward_refusals",
  "hour_changes",
  "ingest_cursors",
  "judged_hours",
  "known_sources",
  "leases",
  "notes",
  "notifications",
  "pages",
  "platform_health",
  "pseudonym_keys",
  "pseudonymised_days",
  "quarantined_entries",
  "raw_blocks",
  "replicas",
  "request_budgets",
  "requested_runs",
  "review_plans",
  "rule_buckets",
  "rule_metrics",
  "rule_peaks",
  "rule_snapshots",
  "saved_views",
  "server_secrets",
  "sessions",
  "sign_in_tokens",
  "silences",
  "source_hours",
  "source_usual",
  "spikes",
  "verdicts",
  "waf_events",
  "zone_suspicions",
  "zone_usual",
];

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let client: pg.Client;

beforeEach(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  client.on("error", () => undefined);
  await client.connect();
});

afterEach(async () => {
  await client.end();
  await database.drop();
});

async function column<T>(query: string): Promise<T[]> {
  const answer = await client.query<{ value: T }>(query);
  return answer.rows.map(({ value }) => value);
}

test("five replicas that migrate at once all succeed, and one of them did it", async () => {
  await Promise.all(Array.from({ length: 5 }, () => migrate({ url: database.url })));

  expect(await column("select count(*)::int as value from drizzle.__drizzle_migrations")).toEqual([
    MIGRATIONS,
  ]);
  const tables = "select tablename::text as value from pg_tables where schemaname = 'public' order by 1";
  expect(await column(tables)).toEqual(TABLES);
});

test("the catalog holds what the schema files cannot say", async () => {
  await migrate({ url: database.url });

  const partitionKeys = `select c.relname || ' ' || pg_get_partkeydef(c.oid) as value
    from pg_partitioned_table p join pg_class c on c.oid = p.partrelid order by 1`;
  expect(await column(partitionKeys)).toEqual(["raw_blocks RANGE (day)", "waf_events RANGE (occurred_at)"]);
  const collation = `select l.collname::text as value from pg_attribute a join pg_collation l on l.oid = a.attcollation
    where a.attrelid = 'waf_events'::regclass and a.attname = 'log_id'`;
  expect(await column(collation)).toEqual(["C"]);
  const indexes = `select substring(indexdef from 'USING .*') as value from pg_indexes
    where tablename = 'waf_events' order by 1`;
  expect(await column(indexes)).toEqual([
    "USING brin (occurred_at)",
    "USING btree (zone_id, occurred_at, log_id)",
    "USING btree (zone_id, rule_id, occurred_at)",
  ]);
});

test("no row of the large tables carries alignment padding between its fixed-width columns", async () => {
  await migrate({ url: database.url });

  const widths = `select c.relname || ':' || string_agg(a.attlen::text, ' ' order by a.attnum) as value
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relname in ('waf_events', 'raw_blocks', 'rule_buckets', 'pages') and a.attlen > 0
    group by c.relname order by 1`;
  expect(await column(widths)).toEqual([
    "pages:8 8 8 4 4 4 4 4 4",
    "raw_blocks:8 8 4 4 4 16",
    "rule_buckets:8 4 4 4 4 4 4 4",
    "waf_events:8 4 4 2",
  ]);
});

test("a rule has one open spike, an alert one open row per fingerprint, a transition one notification", async () => {
  await migrate({ url: database.url });
  const spike = `insert into spikes (opened_at, last_active_at, judged_through, baseline, threshold, score, peak,
      window_count, window_minutes, zone_id, rule_id, severity, kind, evidence)
    values (now(), now(), now(), 1, 10, 9, 90, 90, 3, 7, '942100', 'warning', 'spike', '{}')`;
  const alert = "insert into alerts (fired_at, kind, fingerprint) values (now(), 'spike', 'a')";
  const notification = `insert into notifications (alert_id, transition, reason, channel, dedupe_key)
    select max(id), 1, 'first', 'terminal', 'k' from alerts`;
  for (const statement of [spike, alert, notification]) {
    await client.query(statement);
    await expect(client.query(statement)).rejects.toMatchObject({ code: "23505" });
  }
  await client.query("update spikes set closed_at = opened_at");
  await client.query("update alerts set state = 'resolved', resolved_at = now()");

  await client.query(spike);
  await client.query(alert);
});

test("an hour is open, sealed with evidence, or a gap with a reason", async () => {
  await migrate({ url: database.url });
  const hour = (state: string, more = "null, null, null") =>
    client.query(`insert into coverage_windows (zone_id, starts_at, state, sealed_at, evidence, gap_reason)
      values (7, '2026-11-20T10:00Z', '${state}', ${more})`);

  await expect(hour("sealed")).rejects.toMatchObject({ code: "23514" });
  await expect(hour("gap")).rejects.toMatchObject({ code: "23514" });
  await expect(hour("lost")).rejects.toMatchObject({ code: "23514" });
  await hour("sealed", "now(), '{}', null");
});

test("a database that a later version migrated is refused and left as it is", async () => {
  await migrate({ url: database.url });
  await client.query(
    "insert into drizzle.__drizzle_migrations (hash, created_at) values ('later', 9999999999999)",
  );

  await expect(migrate({ url: database.url })).rejects.toMatchObject({ code: "SCHEMA_TOO_NEW" });
  expect(await column("select count(*)::int as value from drizzle.__drizzle_migrations")).toEqual([
    MIGRATIONS + 1,
  ]);
});

test("a migration gives up when another holds the lock for longer than it may wait", async () => {
  await client.query("begin");
  await client.query("select pg_advisory_xact_lock(7603001)");

  await expect(migrate({ url: database.url, waitTimeoutMs: 50 })).rejects.toMatchObject({ code: "55P03" });
});

test("where nothing is to be done a start waits for no lock and needs no right to change anything", async () => {
  await migrate({ url: database.url });
  await client.query("begin");
  await client.query("select pg_advisory_xact_lock(7603001)");

  await migrate({ url: database.url, waitTimeoutMs: 50 });
});
