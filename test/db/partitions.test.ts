import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listDaysToArchive } from "#db/archive/days-to-archive.ts";
import { listHotDays } from "#db/archive/hot-days.ts";
import { createDatabase } from "#db/client.ts";
import { listDays } from "#db/people/retention.ts";
import { dropPartitionsBefore, ensurePartitions } from "#db/postgres/partitions.ts";
import { wafEvents } from "#db/schema/events.ts";
import { readSqlState } from "#lib/errors.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(() => database.drop());

function insertEvent(occurredAt: string) {
  const event = { zoneId: 7, occurredAt: new Date(occurredAt), logId: occurredAt, route: "search" as const };
  return database.db.insert(wafEvents).values(event);
}

test("five sessions that create the same days at once all succeed, and each table is created once", async () => {
  const days = ["2026-11-19", "2026-11-20", "2026-11-21"];
  const sessions = Array.from({ length: 5 }, () =>
    createDatabase({
      url: database.url,
      max: 2,
      applicationName: "longwatch test",
      onError: () => undefined,
    }),
  );
  try {
    const created = await Promise.all(sessions.map((session) => ensurePartitions(session, days)));
    expect(created.flat().sort()).toEqual([
      "raw_blocks_20261119",
      "raw_blocks_20261120",
      "raw_blocks_20261121",
      "waf_events_20261119",
      "waf_events_20261120",
      "waf_events_20261121",
    ]);
  } finally {
    await Promise.all(sessions.map((session) => session.close()));
  }
  expect(await ensurePartitions(database, days)).toEqual([]);
});

test("an event lies in the partition of its UTC day, to the millisecond", async () => {
  await ensurePartitions(database, ["2026-11-20", "2026-11-21"]);
  await insertEvent("2026-11-20T23:59:59.999Z");
  await insertEvent("2026-11-21T00:00:00.000Z");

  const placed = await database.db.execute(
    sql`select tableoid::regclass::text as partition from waf_events order by occurred_at`,
  );
  expect(placed.rows).toEqual([{ partition: "waf_events_20261120" }, { partition: "waf_events_20261121" }]);
});

test("an event of a day without a partition raises 23514", async () => {
  await ensurePartitions(database, ["2026-11-20"]);

  const thrown = await insertEvent("2026-11-21T00:00:00.000Z").catch((error: unknown) => error);
  expect(readSqlState(thrown)).toBe("23514");
});

test("a new partition carries every index of its parent", async () => {
  await ensurePartitions(database, ["2026-11-20"]);

  const indexes = await database.db.execute(sql`
    select count(*)::int as attached from pg_inherits i join pg_index x on x.indexrelid = i.inhrelid
    where x.indrelid = 'waf_events_20261120'::regclass`);
  expect(indexes.rows).toEqual([{ attached: 3 }]);
});

test("a partition is made while a writer of another day has not committed", async () => {
  await ensurePartitions(database, ["2026-11-20"]);
  const writer = await database.pool.connect();
  try {
    await writer.query("begin");
    await writer.query(
      "insert into waf_events (zone_id, occurred_at, log_id, route) values (7, '2026-11-20T01:00Z', 'a', 'list')",
    );
    expect(await ensurePartitions(database, ["2026-11-21"])).toEqual([
      "waf_events_20261121",
      "raw_blocks_20261121",
    ]);
    await writer.query("commit");
  } finally {
    writer.release();
  }
});

test("retention drops the days before the one given, of the one table", async () => {
  await ensurePartitions(database, ["2025-12-31", "2026-01-01", "2026-01-02"]);

  const dropped = await dropPartitionsBefore(database, "waf_events", "2026-01-02");

  expect(dropped).toEqual(["waf_events_20251231", "waf_events_20260101"]);
  expect(await dropPartitionsBefore(database, "waf_events", "2026-01-02")).toEqual([]);
  expect(await ensurePartitions(database, ["2026-01-01"])).toEqual(["waf_events_20260101"]);
});

test.each(["2026-02-30", "20261120", "2026-11-20'; drop table waf_events; --"])(
  "%s is not a day",
  async (day) => {
    await expect(ensurePartitions(database, [day])).rejects.toThrow(RangeError);
  },
);

test("days are read from the names of the partitions only, whichever join Postgres chooses", async () => {
  await ensurePartitions(database, ["2026-11-20", "2026-11-21"]);
  await database.db.execute(sql`
    insert into archive_files (zone_id, day, kind, path, sha256, bytes, rows, format, hours, sum)
    values (7, '2026-11-20', 'events', 'e', repeat('a', 64), 1, 0, 1, array_fill(0, array[24]), 0)`);
  await database.db.execute(sql`
    insert into coverage_windows (zone_id, starts_at) values (7, '2026-11-20'), (8, '2026-11-20')`);

  for (const refused of [["nestloop"], ["nestloop", "hashjoin"], ["hashjoin", "mergejoin"]])
    await database.db.transaction(async (tx) => {
      for (const join of refused) await tx.execute(sql.raw(`set local enable_${join} = off`));
      expect(await listDays(tx, "raw_blocks")).toEqual(["2026-11-20", "2026-11-21"]);
      expect(await listHotDays(tx, "2026-11-21")).toEqual(["2026-11-20"]);
      expect(await listDaysToArchive(tx, "2026-11-21", null)).toEqual([
        { zoneId: 8, day: "2026-11-20", waitingFor: "open hours" },
      ]);
    });
});
