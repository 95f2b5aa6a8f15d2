/** The daily partitions of large tables. */
import { getTableName, type SQL, sql } from "drizzle-orm";
import { readSqlState } from "#lib/errors.ts";
import { DAY_MS } from "#lib/units.ts";
import type { Database, Queryable } from "../client.ts";
import { rawBlocks } from "../schema/archive.ts";
import { wafEvents } from "../schema/events.ts";
import { ADVISORY_LOCKS, inTransaction } from "./transaction.ts";

const PARTITIONED_TABLES = [getTableName(wafEvents), getTableName(rawBlocks)] as const;
export type PartitionedTable = (typeof PARTITIONED_TABLES)[number];

/**
 * Creates the missing partitions of both tables for each UTC day (`yyyy-mm-dd`). Returns the names of the created
 * ones. Any number of sessions may call it at once. Writers are not blocked: the new table is attached, not created
 * under the parent. There is no default partition: an event of a missing day raises 23514.
 * @throws {RangeError} for a day that is not in the calendar.
 */
export async function ensurePartitions(database: Database, days: readonly string[]): Promise<string[]> {
  const wanted = toPartitions(days);
  const existing = new Set(await listPartitions(database.db));
  if (wanted.every(({ name }) => existing.has(name))) return [];
  return inTransaction(database, ({ tx }) => addPartitions(tx, days));
}

/** The same in a transaction of the caller. */
export async function addPartitions(tx: Queryable, days: readonly string[]): Promise<string[]> {
  await tx.execute(sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.partitions})`);
  const present = new Set(await listPartitions(tx));
  const missing = toPartitions(days).filter(({ name }) => !present.has(name));
  for (const { table, day, nextDay, name } of missing) await addPartition(tx, table, name, day, nextDay);
  return missing.map(({ name }) => name);
}

function toPartitions(days: readonly string[]) {
  return [...new Set(days)].sort().flatMap((day) => {
    const nextDay = addDay(day);
    return PARTITIONED_TABLES.map((table) => ({ table, day, nextDay, name: partitionName(table, day) }));
  });
}

/**
 * Drops the table's partitions of days before `day`, one transaction each. Returns their names. Dropping locks the
 * whole table for a moment, so it waits for the lock two seconds at most and then lets the writers behind it go
 * first.
 */
export async function dropPartitionsBefore(
  database: Database,
  table: PartitionedTable,
  day: string,
): Promise<string[]> {
  const first = partitionName(table, day);
  const old = (await listPartitions(database.db)).filter(
    (name) => name.startsWith(`${table}_`) && name < first,
  );
  for (const name of old) {
    await inTransaction(database, async ({ tx }) => {
      await tx.execute(sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.partitions})`);
      await tx.execute(sql`set local lock_timeout = '2s'`);
      await tx.execute(sql`drop table if exists ${sql.identifier(name)}`);
    });
  }
  return old;
}

/**
 * Returns a query: the UTC days for which the tables have partitions, as `day`, a date. `offset 0` keeps a condition on
 * the day behind the join. Postgres may test it on the name of every relation otherwise, and most end in no date.
 */
export function partitionDays(...tables: PartitionedTable[]): SQL {
  return sql`select distinct to_date(right(name, 8), 'YYYYMMDD') as day from (${namesOf(tables)} offset 0) partitions`;
}

async function listPartitions(db: Queryable): Promise<string[]> {
  const found = await db.execute<{ name: string }>(sql`${namesOf(PARTITIONED_TABLES)} order by 1`);
  return found.rows.map(({ name }) => name);
}

function namesOf(tables: readonly PartitionedTable[]): SQL {
  const parents = sql.join(
    tables.map((table) => sql`${table}::regclass`),
    sql`, `,
  );
  return sql`
    select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent in (${parents})`;
}

async function addPartition(
  tx: Queryable,
  table: PartitionedTable,
  name: string,
  day: string,
  nextDay: string,
): Promise<void> {
  // Bounds cannot be parameters. Both were checked to be days. A time zone would be an error in a date's bound.
  const bound = (at: string) => sql.raw(table === "waf_events" ? `'${at} 00:00:00+00'` : `'${at}'`);
  await tx.execute(sql`create table ${sql.identifier(name)} (like ${sql.identifier(table)} including all)`);
  await tx.execute(
    sql`alter table ${sql.identifier(table)} attach partition ${sql.identifier(name)}
        for values from (${bound(day)}) to (${bound(nextDay)})`,
  );
}

export function partitionName(table: PartitionedTable, day: string): string {
  return `${table}_${addDays(day, 0).replaceAll("-", "")}`;
}

function addDay(day: string): string {
  return addDays(day, 1);
}

function addDays(day: string, count: number): string {
  const start = Date.parse(`${day}T00:00:00Z`);
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(start);
  if (!isDay || new Date(start).toISOString().slice(0, 10) !== day) {
    throw new RangeError(`not a day as yyyy-mm-dd: ${JSON.stringify(day)}`);
  }
  return new Date(start + count * DAY_MS).toISOString().slice(0, 10);
}

const NO_PARTITION = "23514";

/**
 * Returns a keeper that runs writers with the partitions of their days in place. It remembers the days that it has
 * checked, so that a page costs no catalogue query. If retention has dropped a day since, the keeper creates the day
 * again and runs the writer once more.
 */
export function createPartitionKeeper(database: Database) {
  const kept = new Set<string>();

  async function ensure(days: readonly string[]): Promise<void> {
    const missing = days.filter((day) => !kept.has(day));
    if (missing.length === 0) return;
    await ensurePartitions(database, missing);
    for (const day of missing) kept.add(day);
  }

  return {
    /** Runs `write` with partitions for `days`, which are UTC days (`yyyy-mm-dd`). */
    async withDays<T>(days: readonly string[], write: () => Promise<T>): Promise<T> {
      await ensure(days);
      try {
        return await write();
      } catch (thrown) {
        if (readSqlState(thrown) !== NO_PARTITION) throw thrown;
        for (const day of days) kept.delete(day);
        await ensure(days);
        return write();
      }
    },
  };
}

export type PartitionKeeper = ReturnType<typeof createPartitionKeeper>;
