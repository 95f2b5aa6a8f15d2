import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { SeriesKey } from "#model/series-key.ts";
import type { Queryable } from "../client.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";

const b = alias(ruleBuckets, "b");

/** Which rules are quiet. Times are epoch ms. */
export interface QuietScope {
  readonly nowMs: number;
  /** Start of the days that are looked at, and the fewest events in them. */
  readonly daysFromMs: number;
  readonly atLeast: number;
  /** The last event is in [lastFromMs, lastToMs). */
  readonly lastFromMs: number;
  readonly lastToMs: number;
  /** About so many events were to be expected since, if a week had as many as these days. */
  readonly missing: number;
  readonly limit: number;
}

export interface QuietRule extends SeriesKey {
  /** The minute of its last event, since the epoch. */
  readonly lastMinute: number;
  /** One entry per hour of the week up to that event: hour since the epoch, and events. */
  readonly hours: readonly (readonly [hour: number, events: number])[];
}

/** Returns the rules that usually have events and had none for a while, those that miss most first. */
export async function readQuietRules(db: Queryable, scope: QuietScope): Promise<QuietRule[]> {
  const { nowMs, daysFromMs, atLeast, lastFromMs, lastToMs, missing, limit } = scope;
  const { rows } = await db.execute<{ [Key in keyof QuietRule]: QuietRule[Key] }>(sql`
    with busy as materialized (
      select ${b.zoneId}, ${b.ruleId}, sum(${b.total})::float8 as total from ${ruleBuckets} ${b}
      where ${b.width} = 86400 and ${b.startsAt} >= ${new Date(daysFromMs)} and ${b.ruleId} <> ''
      group by ${b.zoneId}, ${b.ruleId} having sum(${b.total}) >= ${atLeast}),
    quiet as (
      select busy.*, last.starts_at as last_at,
        total / 168 * extract(epoch from ${new Date(nowMs)}::timestamptz - last.starts_at) / 3600 as missing
      from busy cross join lateral (
        select ${b.startsAt} from ${ruleBuckets} ${b}
        where ${b.zoneId} = busy.zone_id and ${b.ruleId} = busy.rule_id and ${b.width} = (select 60)
        order by ${b.startsAt} desc limit 1) last),
    asked as materialized (
      select * from quiet where missing >= ${missing}
        and last_at >= ${new Date(lastFromMs)} and last_at < ${new Date(lastToMs)}
      order by missing desc, zone_id, rule_id limit ${limit})
    select zone_id as "zoneId", rule_id as "ruleId", (extract(epoch from last_at) / 60)::integer as "lastMinute", (
      select coalesce(json_agg(json_build_array((extract(epoch from ${b.startsAt}) / 3600)::integer, ${b.total})
        order by ${b.startsAt}), '[]'::json)
      from ${ruleBuckets} ${b}
      where ${b.zoneId} = asked.zone_id and ${b.ruleId} = asked.rule_id and ${b.width} = (select 3600)
        and ${b.startsAt} > last_at - interval '7 days' and ${b.startsAt} <= last_at) as hours
    from asked`);
  return rows;
}
