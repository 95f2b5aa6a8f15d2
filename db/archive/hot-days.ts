import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Database, Queryable } from "../client.ts";
import { partitionDays, partitionName } from "../postgres/partitions.ts";
import { epochMs } from "../postgres/terms.ts";
import { inTransaction } from "../postgres/transaction.ts";
import { archiveFiles } from "../schema/archive.ts";
import { eventAliases, wafEvents } from "../schema/events.ts";
import { lockArchiveDay, type ZoneDay } from "./day-source.ts";

const ea = alias(eventAliases, "ea");
const f = alias(archiveFiles, "f");
const e = alias(wafEvents, "e");

/** A day that must not be dropped: Postgres holds more or less than the archive, or records that another day needs. */
export interface UnarchivedRows {
  readonly zoneId: number;
  readonly stored: number;
  /** Null: the zone's day is not in the archive. */
  readonly archived: number | null;
}

/** Returns the UTC days before `before` that have a partition and are in the archive for at least one zone, oldest first. */
export async function listHotDays(db: Queryable, before: string): Promise<string[]> {
  const { rows } = await db.execute<{ day: string }>(sql`
    select day::text from (${partitionDays("waf_events", "raw_blocks")}) p
    where day < ${before}::date and exists (select from ${archiveFiles} ${f}
      where ${f.day} = p.day and ${f.kind} = 'events' and ${f.retiredAt} is null)
    order by day`);
  return rows.map(({ day }) => day);
}

/**
 * Drops the partitions of a day whose every event is in the archive, by number. Returns the zones that differ; nothing is
 * dropped then. Writers and readers wait for a moment; this waits for them for two seconds at most.
 */
export async function dropArchivedDay(database: Database, day: string): Promise<UnarchivedRows[]> {
  return inTransaction(database, async ({ tx }) => {
    await tx.execute(sql`set local lock_timeout = '2s'`);
    await lockArchiveDay(tx, day);
    const [events, blocks] = (["waf_events", "raw_blocks"] as const).map((table) =>
      partitionName(table, day),
    );
    const countOf = async (name: string | undefined, count: string) => {
      const { rows } = await tx.execute<{ name: string | null }>(
        sql`select to_regclass(${name ?? ""})::text as name`,
      );
      if (rows[0]?.name == null) return null;
      return sql.raw(`select zone_id, ${count} as stored from ${name} group by zone_id`);
    };
    const counts = [await countOf(events, "count(*)"), await countOf(blocks, "0")].filter(
      (part) => part !== null,
    );
    if (counts.length === 0) return [];
    const needed = await readNeededBy(tx, day);
    if (needed.length > 0) return needed;
    const { rows: differing } = await tx.execute<UnarchivedRows & Record<string, unknown>>(sql`
      select zone_id as "zoneId", sum(stored)::float8 as stored, max(f.rows)::float8 as archived
      from (${sql.join(counts, sql` union all `)}) s
      left join (select ${f.zoneId}, ${f.rows} from ${archiveFiles} ${f}
        where ${f.day} = ${day}::date and ${f.kind} = 'events' and ${f.retiredAt} is null) f using (zone_id)
      group by zone_id having max(f.rows) is distinct from sum(stored) order by zone_id`);
    if (differing.length > 0) return differing;
    for (const name of [events, blocks])
      await tx.execute(sql`drop table if exists ${sql.identifier(name ?? "")}`);
    return [];
  });
}

/** Returns whether Postgres has events of the zone's day. The partition of a day may have other zones' events only. */
export async function isDayStored(db: Queryable, { zoneId, day }: ZoneDay): Promise<boolean> {
  const { rows } = await db.execute<{ found: boolean }>(
    sql`select ${isStored(sql`${zoneId}`, sql`${day}::date`)} as found`,
  );
  return rows[0]?.found ?? false;
}

/** Returns a condition: Postgres has events of the zone on the day, a date. */
export function isStored(zoneId: SQLWrapper, day: SQLWrapper): SQL {
  return sql`exists (select from ${wafEvents} ${e} where ${e.zoneId} = ${zoneId}
    and ${e.occurredAt} >= (${day})::timestamp at time zone 'UTC'
    and ${e.occurredAt} < (${day} + 1)::timestamp at time zone 'UTC')`;
}

/**
 * Returns the zones of which the day holds records of events that are stored under the time of another day, while that
 * day is not archived yet.
 */
async function readNeededBy(tx: Queryable, day: string): Promise<UnarchivedRows[]> {
  const { rows } = await tx.execute<UnarchivedRows & Record<string, unknown>>(sql`
    select zone_id as "zoneId", count(*)::float8 as stored, null as archived from (
      select ${ea.zoneId}, (${ea.keptAt} at time zone 'UTC')::date as day from ${eventAliases} ${ea}
      where ${ea.otherAt} >= ${day}::date::timestamp at time zone 'UTC'
        and ${ea.otherAt} < (${day}::date + 1)::timestamp at time zone 'UTC') a
    where day <> ${day}::date and to_regclass('waf_events_' || to_char(day, 'YYYYMMDD')) is not null
      and not exists (select from ${archiveFiles} ${f}
        where ${f.zoneId} = a.zone_id and ${f.day} = a.day and ${f.kind} = 'events' and ${f.retiredAt} is null)
    group by zone_id`);
  return rows;
}

/**
 * Returns the end of the last day of a zone that is in the archive only (epoch ms), null if there is none. Postgres has
 * every later day that is stored.
 */
export async function readColdEnd(db: Queryable, zoneId: number): Promise<number | null> {
  const [row] = await db
    .select({ at: epochMs(sql<string | null>`(max(${f.day}) + 1)::timestamp at time zone 'UTC'`) })
    .from(f)
    .where(sql`${f.zoneId} = ${zoneId} and ${f.kind} = 'events' and ${f.retiredAt} is null
      and not ${isStored(f.zoneId, f.day)}`);
  return row?.at ?? null;
}
