import { and, eq, isNull, lt, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { startOfDay, toDay } from "#model/horizon.ts";
import type { ArchiveKind } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { type PartitionedTable, partitionDays } from "../postgres/partitions.ts";
import { epochMs } from "../postgres/terms.ts";
import { advice, alerts, exclusions, silences } from "../schema/alerts.ts";
import { archiveFiles, rawBlocks } from "../schema/archive.ts";
import { eventAliases, eventRevisions, hourChanges, wafEvents } from "../schema/events.ts";
import { forwardHours, forwardReceipts, forwardRefusals } from "../schema/forwarding.ts";
import { ingestCursors, pages, quarantinedEntries } from "../schema/ingest.ts";
import { pseudonymisedDays } from "../schema/privacy.ts";
import { ruleBuckets, ruleMetrics, rulePeaks } from "../schema/rules.ts";
import { judgedHours, sourceHours, sourceUsual, zoneUsual } from "../schema/sources.ts";
import { spikes } from "../schema/spikes.ts";

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
  const isWithoutRecords = (column: PgColumn) =>
    sql`(${column} at time zone 'UTC')::date <> all (${recordDays})`;
  const { otherAt, keptAt } = eventAliases;
  const { startsAt, width } = ruleBuckets;
  let deleted = 0;
  for (const [table, isExpired] of [
    [quarantinedEntries, lt(quarantinedEntries.receivedAt, new Date(rawFrom))],
    // An alias is the only way to a record that is kept under another time than its event.
    [
      eventAliases,
      and(lt(otherAt, new Date(now - ALIASES_KEPT_MS)), isWithoutRecords(otherAt), isWithoutRecords(keptAt)),
    ],
    [eventRevisions, lt(eventRevisions.occurredAt, new Date(eventsFrom))],
    [
      hourChanges,
      sql`${hourChanges.startsAt} < (select min(day) from (${partitionDays("waf_events")}) p)::timestamp at time zone 'UTC'`,
    ],
    [pages, lt(pages.day, toDay(eventsFrom))],
    [ingestCursors, lt(ingestCursors.day, toDay(eventsFrom))],
    [ruleBuckets, lt(startsAt, rollUps)],
    [
      ruleBuckets,
      sql`${width} = 60 and ${startsAt} < ${new Date(startOfDay(minutesFrom))} and exists (select from ${archiveFiles}
        where ${archiveFiles.zoneId} = ${ruleBuckets.zoneId} and ${archiveFiles.day} = (${startsAt} at time zone 'UTC')::date
          and ${archiveFiles.kind} = 'events' and ${archiveFiles.retiredAt} is null)`,
    ],
    [rulePeaks, lt(rulePeaks.startsAt, rollUps)],
    [sourceHours, lt(sourceHours.startsAt, new Date(sourcesFrom))],
    [judgedHours, lt(judgedHours.startsAt, rollUps)],
    [forwardHours, lt(forwardHours.startsAt, new Date(eventsFrom))],
    [forwardReceipts, lt(forwardReceipts.startsAt, new Date(eventsFrom))],
    [forwardRefusals, lt(forwardRefusals.occurredAt, new Date(eventsFrom))],
    [sourceUsual, lt(sourceUsual.day, toDay(Math.max(sourcesFrom, addressesFrom)))],
    // The nightly job learns the values of a watched zone again.
    [zoneUsual, lt(zoneUsual.since, new Date(eventsFrom))],
    [ruleMetrics, lt(ruleMetrics.day, toDay(rollUpsFrom))],
    [alerts, and(eq(alerts.state, "resolved"), lt(alerts.resolvedAt, rollUps))],
    [advice, lt(advice.askedAt, rollUps)],
    // One that was followed is watched for as long as it lasts.
    [exclusions, and(isNull(exclusions.followedAt), lt(exclusions.proposedAt, rollUps))],
    [silences, lt(silences.expiresAt, rollUps)],
    [
      spikes,
      sql`${spikes.closedAt} < ${rollUps} and not exists (select from ${alerts} where ${alerts.spikeId} = ${spikes.id})`,
    ],
  ] as const)
    deleted += await deleteAll(db, table, isExpired);
  return deleted;
}

async function deleteAll(db: Queryable, table: PgTable, isExpired: SQL | undefined): Promise<number> {
  let deleted = 0;
  for (;;) {
    const { rowCount } = await db.execute(sql`
      delete from ${table} where ctid = any (array(
        select ctid from ${table} where ${isExpired} limit ${ROWS_PER_STATEMENT} for update skip locked))`);
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
  const first = async (table: PgTable, time: PgColumn, where?: SQL) => {
    const [row] = await db
      .select({ at: epochMs(sql<string | null>`min(${time})`) })
      .from(table)
      .where(where);
    return row?.at ?? null;
  };
  const firstDay = async (table: PartitionedTable, of: (day: string) => Promise<number | null>) => {
    for (const day of await listDays(db, table)) {
      const at = await of(day);
      if (at !== null) return at;
    }
    return null;
  };
  const { occurredAt } = wafEvents;
  const firstEvent = (day: string, where = sql`true`) =>
    first(
      wafEvents,
      occurredAt,
      sql`${occurredAt} >= ${day}::date and ${occurredAt} < ${day}::date + 1 and ${where}`,
    );
  const done = await db.select({ day: pseudonymisedDays.day }).from(pseudonymisedDays);
  const isDone = new Set(done.map(({ day }) => day));
  // A file's addresses are not read: a day that is not done counts as one with full addresses.
  const { firstAt, kind, retiredAt, day: fileDay } = archiveFiles;
  const firstArchived = (fileKind: ArchiveKind, where?: SQL) =>
    first(archiveFiles, firstAt, and(eq(kind, fileKind), isNull(retiredAt), where));
  return {
    raw: earliest(
      await firstDay("raw_blocks", (day) => first(rawBlocks, rawBlocks.firstAt, eq(rawBlocks.day, day))),
      await firstArchived("records"),
    ),
    fullAddress: earliest(
      await firstDay("waf_events", async (day) =>
        isDone.has(day) ? null : firstEvent(day, IS_FULL_ADDRESS),
      ),
      await firstArchived(
        "events",
        sql`to_regclass('waf_events_' || to_char(${fileDay}, 'YYYYMMDD')) is null
          and not exists (select from ${pseudonymisedDays} where ${pseudonymisedDays.day} = ${fileDay})`,
      ),
    ),
    event: earliest(await firstDay("waf_events", (day) => firstEvent(day)), await firstArchived("events")),
    rollUp: await first(ruleBuckets, ruleBuckets.startsAt, eq(ruleBuckets.width, 86_400)),
    quarantined: await first(quarantinedEntries, quarantinedEntries.receivedAt),
  };
}

function earliest(...times: readonly (number | null)[]): number | null {
  const known = times.filter((at) => at !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** The condition of `isFullAddress` in src/people/rules, in SQL. */
const IS_FULL_ADDRESS = sql`${wafEvents.ip} not in ('', 'erased') and ${wafEvents.ip} not like '%*%'
  and ${wafEvents.ip} !~ '^anon-[a-z2-7]{13}-[a-z2-7]{13}$'`;
