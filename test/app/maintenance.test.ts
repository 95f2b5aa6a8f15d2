import { afterEach, beforeEach, expect, test } from "vitest";
import { readReplicas } from "#db/postgres/leases.ts";
import { createManagePartitionsJob } from "#jobs/health/manage-partitions.ts";
import { createSweepJob } from "#jobs/health/sweep.ts";
import { DAY_MS } from "#lib/units.ts";
import { insertSpike } from "../alerts/insert-spike.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { storeEvents } from "../db/new-events.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { silent } from "../ingest/ingest-support.ts";

const NOW = Date.UTC(2026, 1, 28, 23, 59);
let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(() => database.drop());

async function partitions(table: string) {
  const { rows } = await database.pool.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1",
    [table],
  );
  return rows.map(({ name }) => name.slice(-8));
}

function manage(now: number, eventDays = 400) {
  const retention = { rawDays: eventDays, ipDays: 400, eventDays, rollUpDays: 800 };
  const job = createManagePartitionsJob({ database, clock: () => now, log: silent, retention });
  return job.run({} as never, new AbortController().signal);
}

test("F9: the days the platform still shows and those to come have partitions, also across a month's end", async () => {
  await Promise.all([manage(NOW), manage(NOW), manage(NOW)]);
  const days = ["20260225", "20260226", "20260227", "20260228", "20260301", "20260302", "20260303"];
  expect(await partitions("waf_events")).toEqual(days);
  expect(await partitions("raw_blocks")).toEqual(days);
});

test("days past retention are dropped, whole, and never one that the platform still shows", async () => {
  await manage(NOW);
  await Promise.all([manage(NOW + 5 * DAY_MS, 4), manage(NOW + 5 * DAY_MS, 4)]);
  expect((await partitions("waf_events"))[0]).toBe("20260301");
  expect(await partitions("raw_blocks")).toEqual(await partitions("waf_events"));
  expect(await partitions("waf_events")).toHaveLength(8);
});

test("the second time of an event is kept as long as the records of either day", async () => {
  const ids = async () => {
    const { rows } = await database.pool.query("select log_id from event_aliases order by log_id");
    return rows.map(({ log_id }) => log_id);
  };
  await manage(NOW);
  await database.pool.query(
    `insert into event_aliases (zone_id, log_id, other_at, kept_at, noted_at)
     values (1, 'earlier', to_timestamp($1::float8 / 1000), to_timestamp($2::float8 / 1000), now())`,
    [NOW - DAY_MS, NOW],
  );
  // More than ten days later, another event is shown under two times.
  for (const occurredAt of [NOW + 700, NOW])
    await storeEvents(database, 1, [makeEvent({ occurredAt, logId: "later" })], { expectNew: false });
  expect(await ids()).toEqual(["earlier", "later"]);
  await manage(NOW + 12 * DAY_MS, 400);
  await manage(NOW + 12 * DAY_MS, 12);
  expect(await ids()).toEqual(["earlier", "later"]);
  await manage(NOW + 12 * DAY_MS, 11);
  expect(await ids()).toEqual([]);
});

test("processes that were not seen for a week are forgotten, but never the last one that was seen", async () => {
  const put = (id: string, daysAgo: number) =>
    database.pool.query(
      `insert into replicas (id, host, pid, version, roles, zone_ids, seen_at)
      values ($1, 'one', 1, '0', '{}', '{}', now() - $2 * interval '1 day')`,
      [id, daysAgo],
    );
  const ids = async () => (await readReplicas(database.db)).map(({ id }) => id);
  await put("older", 30);
  await put("old", 20);
  await manage(NOW);
  expect(await ids()).toEqual(["old"]);
  await put("recent", 6);
  await manage(NOW);
  expect(await ids()).toEqual(["recent"]);
});

async function sweep() {
  const enqueued: string[] = [];
  const job = createSweepJob({
    database,
    clock: Date.now,
    enqueue: async (name) => void enqueued.push(name),
  });
  await job.run({} as never, new AbortController().signal);
  return enqueued.sort();
}

test("a sweep without due work enqueues nothing", async () => {
  expect(await sweep()).toEqual([]);
});

test("F21: the sweep enqueues work that lies in the tables after its job was lost", async () => {
  await database.pool.query(
    "insert into dirty_buckets (zone_id, rule_id, minute) values (1, 'a', '2026-02-28T00:00Z')",
  );
  expect(await sweep()).toEqual(["roll-up-trends"]);
  await insertSpike(database.db, { openedAt: new Date(NOW) });
  expect(await sweep()).toEqual(["fetch-advice", "raise-alerts", "roll-up-trends"]);
});

test("an alert whose spike has closed is enqueued until it is resolved", async () => {
  const id = await insertSpike(database.db, { openedAt: new Date(NOW), closedAt: new Date(NOW + DAY_MS) });
  expect(await sweep()).toEqual([]);
  await database.pool.query(
    "insert into alerts (fired_at, spike_id, zone_id, kind, fingerprint) values (now(), $1, 1, 'spike', 'f')",
    [id],
  );
  expect(await sweep()).toEqual(["fetch-advice", "raise-alerts"]);
  await database.pool.query("update alerts set state = 'resolved', resolved_at = now()");
  expect(await sweep()).toEqual([]);
});

test("a due notification is enqueued, also one that a killed sender left behind", async () => {
  await database.pool.query("insert into alerts (fired_at, kind, fingerprint) values (now(), 'spike', 'f')");
  await database.pool.query(
    `insert into notifications (alert_id, transition, reason, channel, dedupe_key, next_attempt_at)
     select id, 1, 'first', 'terminal', 'k', now() + interval '1 hour' from alerts`,
  );
  expect(await sweep()).toEqual([]);
  await database.pool.query("update notifications set next_attempt_at = now() - interval '1 second'");
  expect(await sweep()).toEqual(["deliver-alerts"]);
  await database.pool.query("update notifications set state = 'sending'");
  expect(await sweep()).toEqual(["deliver-alerts"]);
  await database.pool.query("update notifications set state = 'delivered', delivered_at = now()");
  expect(await sweep()).toEqual([]);
});
