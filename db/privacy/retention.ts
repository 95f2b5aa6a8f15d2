import { type SQL, sql } from "drizzle-orm";
import { startOfDay, toDay } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";
import { type PartitionedTable, partitionDays } from "../postgres/partitions.ts";

const ROWS_PER_STATEMENT = 5_000;

/** The first moment of each class that is kept; epoch ms. */
export interface KeptFrom {
  readonly rawFrom: number;
  readonly eventsFrom: number;
  readonly rollUpsFrom: number;
  /** Counts by the minute of archive days. */
  readonly minutesFrom: number;
  readonly addressesFrom: number;
}

/** The platform shows an event for 72 hours. Until then an alias also keeps the list from storing its event again. */
const ALIASES_KEPT_MS = 10 * 86_400_000;
/** The source series look back a week. */
const SOURCE_DAYS_MS = 8 * 86_400_000;

/**
 * Deletes rows past retention from the tables that are not partitioned, in separate statements, so that none holds
 * many rows locked. An unresolved alert and its spike stay, whatever their age.
 */
export async function deleteExpired(
  db: Queryable,
  { rawFrom, eventsFrom, rollUpsFrom, minutesFrom, addressesFrom }: KeptFrom,
  now: number,
): Promise<number> {
  const sourcesFrom = now - SOURCE_DAYS_MS;
  const rollUps = new Date(rollUpsFrom);
  const recordDays = sql`${sql.param(await listDays(db, "raw_blocks"))}::date[]`;
  const isWithoutRecords = (column: SQL) => sql`(${column} at time zone 'UTC')::date <> all (${recordDays})`;
  let deleted = 0;
  for (const [table, isExpired] of [
    ["quarantined_entries", sql`received_at < ${new Date(rawFrom)}`],
    ["held_events", sql`held_at < ${new Date(rawFrom)}`],
    ["held_blocks", sql`held_at < ${new Date(rawFrom)}`],
    // An alias is the only way to a record that is kept under another time than its event.
    [
      "event_aliases",
      sql`other_at < ${new Date(now - ALIASES_KEPT_MS)}
        and ${isWithoutRecords(sql`other_at`)} and ${isWithoutRecords(sql`kept_at`)}`,
    ],
    ["event_revisions", sql`occurred_at < ${new Date(eventsFrom)}`],
    ["pages", sql`day < ${toDay(eventsFrom)}::date`],
    ["ingest_cursors", sql`day < ${toDay(eventsFrom)}::date`],
    ["rule_buckets", sql`starts_at < ${rollUps}`],
    [
      "rule_buckets",
      sql`width = 60 and starts_at < ${new Date(startOfDay(minutesFrom))} and exists (select from archive_files f
        where f.zone_id = rule_buckets.zone_id and f.day = (rule_buckets.starts_at at time zone 'UTC')::date
          and f.kind = 'events' and f.retired_at is null)`,
    ],
    ["rule_peaks", sql`starts_at < ${rollUps}`],
    ["source_hours", sql`starts_at < ${new Date(sourcesFrom)}`],
    ["source_usual", sql`day < ${toDay(Math.max(sourcesFrom, addressesFrom))}::date`],
    ["rule_metrics", sql`day < ${toDay(rollUpsFrom)}::date`],
    ["alerts", sql`state = 'resolved' and resolved_at < ${rollUps}`],
    ["advice", sql`asked_at < ${rollUps}`],
    ["silences", sql`expires_at < ${rollUps}`],
    [
      "spikes",
      sql`closed_at < ${rollUps} and not exists (select from alerts a where a.spike_id = spikes.id)`,
    ],
  ] as const)
    deleted += await deleteAll(db, table, isExpired);
  return deleted;
}

async function deleteAll(db: Queryable, table: string, isExpired: SQL): Promise<number> {
  let deleted = 0;
  for (;;) {
    const { rowCount } = await db.execute(sql`
      delete from ${sql.identifier(table)} where ctid = any (array(
        select ctid from ${sql.identifier(table)} where ${isExpired} limit ${ROWS_PER_STATEMENT} for update skip locked))`);
    deleted += rowCount ?? 0;
    if ((rowCount ?? 0) < ROWS_PER_STATEMENT) return deleted;
  }
}

/** Returns the UTC days (`yyyy-mm-dd`) for which a table has partitions, oldest first. */
export async function listDays(db: Queryable, table: PartitionedTable): Promise<string[]> {
  const { rows } = await db.execute<{ day: string }>(sql`
    select day::text from (${partitionDays(table)}) d order by 1`);
  return rows.map(({ day }) => day);
}

/** The oldest row of each class; epoch ms, null if there is none. */
export interface OldestRows {
  readonly raw: number | null;
  readonly fullAddress: number | null;
  readonly event: number | null;
  readonly rollUp: number | null;
  readonly quarantined: number | null;
}

/**
 * Returns the oldest rows. Checks day by day from the oldest on and stops at the first day with such a row, so that
 * it does not read all days.
 */
export async function readOldestRows(db: Queryable): Promise<OldestRows> {
  const first = async (statement: SQL) => {
    const { rows } = await db.execute<{ at: number | null }>(statement);
    return rows[0]?.at ?? null;
  };
  const ms = (column: string) => sql.raw(`(extract(epoch from min(${column})) * 1000)::float8 as at`);
  const firstDay = async (table: "waf_events" | "raw_blocks", of: (day: string) => SQL) => {
    for (const day of await listDays(db, table)) {
      const at = await first(of(day));
      if (at !== null) return at;
    }
    return null;
  };
  const isDay = (day: string) => sql`occurred_at >= ${day}::date and occurred_at < ${day}::date + 1`;
  const { rows: done } = await db.execute<{ day: string }>(sql`select day::text from pseudonymised_days`);
  const isDone = new Set(done.map(({ day }) => day));
  // A file's addresses are not read: a day that is not done counts as one with full addresses.
  const firstArchived = (kind: string, where: SQL = sql`true`) =>
    first(
      sql`select ${ms("first_at")} from archive_files where kind = ${kind} and retired_at is null and ${where}`,
    );
  return {
    raw: earliest(
      await firstDay("raw_blocks", (day) => sql`select ${ms("first_at")} from raw_blocks where day = ${day}`),
      await firstArchived("records"),
    ),
    fullAddress: earliest(
      await firstDay("waf_events", (day) =>
        isDone.has(day)
          ? sql`select null as at`
          : sql`select ${ms("occurred_at")} from waf_events where ${isDay(day)} and ${IS_FULL_ADDRESS}`,
      ),
      await firstArchived(
        "events",
        sql`to_regclass('waf_events_' || to_char(day, 'YYYYMMDD')) is null
          and not exists (select from pseudonymised_days p where p.day = archive_files.day)`,
      ),
    ),
    event: earliest(
      await firstDay(
        "waf_events",
        (day) => sql`select ${ms("occurred_at")} from waf_events where ${isDay(day)}`,
      ),
      await firstArchived("events"),
    ),
    rollUp: await first(sql`select ${ms("starts_at")} from rule_buckets where width = 86400`),
    quarantined: await first(sql`select ${ms("received_at")} from quarantined_entries`),
  };
}

function earliest(...times: readonly (number | null)[]): number | null {
  const known = times.filter((at) => at !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** The condition of `isFullAddress` in src/stages/privacy, in SQL. */
const IS_FULL_ADDRESS = sql`ip not in ('', 'erased') and ip not like '%*%'
  and ip !~ '^anon-[a-z2-7]{13}-[a-z2-7]{13}$'`;
