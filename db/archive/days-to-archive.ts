/** Which days can be archived, and the evidence of each of their hours. */
import { and, eq, gt, type SQL, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { partitionDays } from "../postgres/partitions.ts";
import { names } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { wafEvents } from "../schema/events.ts";
import { dirtyBuckets, quarantinedEntries } from "../schema/ingest.ts";
import { erasures } from "../schema/privacy.ts";
import { ruleBuckets } from "../schema/rules.ts";
import type { ZoneDay } from "./day-source.ts";

const e = alias(wafEvents, "e");
const f = alias(archiveFiles, "f");
const c = alias(coverageWindows, "c");
const q = alias(quarantinedEntries, "q");
const b = alias(dirtyBuckets, "b");
const r = alias(erasures, "r");

/** Reason why a zone's day is not archived yet; null if it can be archived now. */
type WaitingFor = "open hours" | "missing hours" | "held entries" | "stale minutes" | "an erasure";

interface DayToArchive extends ZoneDay {
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
      when exists (select from ${quarantinedEntries} ${q}
        where ${q.zoneId} = d.zone_id and ${q.day} = d.day and ${q.isHeld}) then 'held entries'
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

const d = alias(dirtyBuckets, "d");

/** One hour of a day as coverage recorded it; times in ISO 8601. */
interface HourEvidence {
  readonly startsAt: string;
  readonly state: string;
  readonly events: number;
  readonly platformCount: number | null;
  readonly sealedAt: string | null;
  readonly gapReason: string | null;
  readonly evidence: unknown;
}

/** Returns the recorded hours of a day, oldest first. */
export function readDayEvidence(db: Queryable, { zoneId, day }: ZoneDay): Promise<HourEvidence[]> {
  const { startsAt, state, storedCount, upstreamCount, sealedAt, gapReason, evidence } = coverageWindows;
  const iso = (column: PgColumn) =>
    sql<string>`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  return db
    .select({
      startsAt: iso(startsAt),
      state,
      events: storedCount,
      platformCount: upstreamCount,
      sealedAt: sql<string | null>`${iso(sealedAt)}`,
      gapReason,
      evidence,
    })
    .from(coverageWindows)
    .where(and(eq(coverageWindows.zoneId, zoneId), isOn(startsAt, day)))
    .orderBy(startsAt);
}

function isOn(time: PgColumn, day: string): SQL {
  return sql`${time} >= ${day}::date::timestamp at time zone 'UTC'
    and ${time} < (${day}::date + 1)::timestamp at time zone 'UTC'`;
}

/** A rule's hour of which the roll-up and the events differ. */
interface DifferingHour {
  readonly hour: number;
  readonly ruleId: string;
  readonly counted: number;
  readonly events: number;
}

/** Returns the events per hour and rule according to the roll-up, in the order of `sumEvents`. */
export function readHourCounts(
  db: Queryable,
  { zoneId, day }: ZoneDay,
): Promise<{ hour: number; ruleId: string; events: number }[]> {
  const { startsAt, width, total, ruleId } = ruleBuckets;
  return db
    .select({
      hour: sql<number>`extract(hour from ${startsAt} at time zone 'UTC')::integer`,
      ruleId,
      events: total,
    })
    .from(ruleBuckets)
    .where(and(eq(ruleBuckets.zoneId, zoneId), eq(width, 3_600), gt(total, 0), isOn(startsAt, day)))
    .orderBy(sql`1, ${ruleId} collate "C"`);
}

/** Marks every minute of these hours as stale, so that the roll-up counts them again. */
export async function recountHours(
  db: Queryable,
  { zoneId, day }: ZoneDay,
  hours: readonly Pick<DifferingHour, "hour" | "ruleId">[],
): Promise<void> {
  await db.execute(sql`
    insert into ${dirtyBuckets} as ${d} (${names(d.zoneId, d.ruleId, d.minute)})
    select ${zoneId}, rule_id, (${day}::date::timestamp at time zone 'UTC') + make_interval(hours => hour, mins => minute)
    from unnest(${sql.param(hours.map(({ ruleId }) => ruleId))}::text[],
      ${sql.param(hours.map(({ hour }) => hour))}::integer[]) as given(rule_id, hour)
    cross join generate_series(0, 59) as minute
    order by rule_id collate "C", hour, minute
    on conflict (${names(d.zoneId, d.ruleId, d.minute)}) do update set ${names(d.marks)} = ${d.marks} + 1`);
}
