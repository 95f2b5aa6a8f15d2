import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { partitionDays } from "../postgres/partitions.ts";
import { archiveFiles } from "../schema/archive-files.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { dirtyBuckets } from "../schema/dirty-buckets.ts";
import { erasures } from "../schema/erasures.ts";
import { heldBlocks } from "../schema/held-blocks.ts";
import { heldEvents } from "../schema/held-events.ts";
import { wafEvents } from "../schema/waf-events.ts";
import type { ZoneDay } from "./day-source.ts";

const e = alias(wafEvents, "e");
const f = alias(archiveFiles, "f");
const c = alias(coverageWindows, "c");
const h = alias(heldEvents, "h");
const k = alias(heldBlocks, "k");
const b = alias(dirtyBuckets, "b");
const r = alias(erasures, "r");

/** Reason why a zone's day is not archived yet; null if it can be archived now. */
type WaitingFor =
  | "open hours"
  | "missing hours"
  | "held events"
  | "held records"
  | "stale minutes"
  | "an erasure";

export interface DayToArchive extends ZoneDay {
  readonly waitingFor: WaitingFor | null;
}

/**
 * Returns the zones' days before `before` (`yyyy-mm-dd`) that are not in the archive, oldest first, with what each
 * still waits for. An hour without a row is missing if the zone was watched before it: the rows of a long outage are
 * yet to come. Zones that were never watched or are no longer configured have no hours to wait for, and only days with
 * events. `zoneIds` are the configured zones; null if they are not known.
 */
export async function listDaysToArchive(
  db: Queryable,
  before: string,
  zoneIds: readonly number[] | null,
): Promise<DayToArchive[]> {
  const isConfigured =
    zoneIds === null ? sql`true` : sql`${c.zoneId} = any(${sql.param([...zoneIds])}::integer[])`;
  const { rows } = await db.execute<DayToArchive & Record<string, unknown>>(sql`
    with recursive partitions as (${partitionDays("waf_events")}),
    zones as (
      (select ${e.zoneId} from ${wafEvents} ${e} order by ${e.zoneId} limit 1)
      union all
      select (select ${e.zoneId} from ${wafEvents} ${e} where ${e.zoneId} > z.zone_id order by ${e.zoneId} limit 1)
      from zones z where z.zone_id is not null),
    watched as (
      select ${c.zoneId}, min(${c.startsAt}) as since from ${coverageWindows} ${c}
      where ${isConfigured} group by ${c.zoneId}),
    days as (
      select day, zone_id, day::timestamp at time zone 'UTC' as from_at, (day + 1)::timestamp at time zone 'UTC' as to_at,
        w.since
      from partitions cross join (select zone_id from zones where zone_id is not null union select zone_id from watched) z
      left join watched w using (zone_id)
      where day < ${before}::date
        and not exists (select from ${archiveFiles} ${f}
          where ${f.zoneId} = z.zone_id and ${f.day} = partitions.day and ${f.kind} = 'events'
            and ${f.retiredAt} is null)
        and (w.since < (day + 1)::timestamp at time zone 'UTC' or exists (select from ${wafEvents} ${e}
          where ${e.zoneId} = z.zone_id
          and ${e.occurredAt} >= day::timestamp at time zone 'UTC'
          and ${e.occurredAt} < (day + 1)::timestamp at time zone 'UTC')))
    select zone_id as "zoneId", day::text, case
      when exists (select from ${coverageWindows} ${c}
        where ${c.zoneId} = d.zone_id and ${c.startsAt} >= from_at and ${c.startsAt} < to_at
          and ${c.state} = 'open') then 'open hours'
      when (select count(*) from ${coverageWindows} ${c}
        where ${c.zoneId} = d.zone_id and ${c.startsAt} >= from_at and ${c.startsAt} < to_at)
        < extract(epoch from to_at - greatest(from_at, least(d.since, to_at))) / 3600 then 'missing hours'
      when exists (select from ${heldEvents} ${h}
        where ${h.zoneId} = d.zone_id and ${h.occurredAt} >= from_at and ${h.occurredAt} < to_at) then 'held events'
      when exists (select from ${heldBlocks} ${k} where ${k.zoneId} = d.zone_id and ${k.day} = d.day) then 'held records'
      when exists (select from ${dirtyBuckets} ${b}
        where ${b.zoneId} = d.zone_id and ${b.minute} >= from_at and ${b.minute} < to_at) then 'stale minutes'
      when ${isBeingErased(sql`d.zone_id`, sql`from_at`)} then 'an erasure'
      end as "waitingFor"
    from days d order by day, zone_id`);
  return rows;
}

/** Returns whether an erasure that covers the day is in progress. */
export async function hasOpenErasure(db: Queryable, { zoneId, day }: ZoneDay): Promise<boolean> {
  const { rows } = await db.execute<{ found: boolean }>(
    sql`select ${isBeingErased(sql`${zoneId}`, sql`${day}::date::timestamp at time zone 'UTC'`)} as found`,
  );
  return rows[0]?.found ?? false;
}

function isBeingErased(zoneId: SQL, from: SQL): SQL {
  return sql`exists (select from ${erasures} ${r}
    where ${r.endedAt} is null and (${r.zoneId} is null or ${r.zoneId} = ${zoneId}) and ${r.untilAt} >= ${from})`;
}
