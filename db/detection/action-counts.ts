import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { SeriesKey } from "#model/series-key.ts";
import type { Queryable } from "../client.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";
import { wafEvents } from "../schema/waf-events.ts";
import { askedSeries } from "./asked-series.ts";

const b = alias(ruleBuckets, "b");
const e = alias(wafEvents, "e");

const STOPPED = sql`${b.blocked} + ${b.challenged}`;
const SUMS = sql`coalesce(sum(${STOPPED}), 0)::float8 as stopped, coalesce(sum(${b.logged}), 0)::float8 as logged`;

/** Which rules may have changed their action. Times are epoch ms. */
export interface ActionScope {
  /** Only rules with an event of their rarer action since then. */
  readonly fromMs: number;
  /** Start of the days whose counts say which action is rare. */
  readonly daysFromMs: number;
  /** The rarer action has at least so many events, and at most this share of all. */
  readonly atLeast: number;
  readonly share: number;
  /** Rules that changed lately: their counts do not say which action is rare. */
  readonly changed: readonly SeriesKey[];
  /** First hour of those that are returned, since the epoch. */
  readonly fromHour: number;
  readonly limit: number;
}

export interface ActionCounts extends SeriesKey {
  /** One entry per hour with events: hour since the epoch, events blocked or challenged, and events logged. */
  readonly hours: readonly (readonly [hour: number, stopped: number, logged: number])[];
}

/** Returns the hours of the rules that may have changed their action, those whose rarer action is rarest first. */
export async function readActionCounts(db: Queryable, scope: ActionScope): Promise<ActionCounts[]> {
  const { fromMs, daysFromMs, atLeast, share, changed, fromHour, limit } = scope;
  const isOfRule = sql`${b.zoneId} = recent.zone_id and ${b.ruleId} = recent.rule_id`;
  const { rows } = await db.execute<{ [Key in keyof ActionCounts]: ActionCounts[Key] }>(sql`
    with recent as materialized (
      select ${b.zoneId}, ${b.ruleId}, ${SUMS} from ${ruleBuckets} ${b}
      where ${b.width} = 60 and ${b.ruleId} <> '' and ${b.startsAt} >= ${new Date(fromMs)}
      group by ${b.zoneId}, ${b.ruleId}),
    asked as materialized (
      select recent.zone_id, recent.rule_id from recent
      cross join lateral (
        select ${SUMS} from ${ruleBuckets} ${b}
        where ${isOfRule} and ${b.width} = (select 86400) and ${b.startsAt} >= ${new Date(daysFromMs)}) days
      cross join lateral (
        select least(days.stopped, days.logged) as rare, days.stopped + days.logged as events) sums
      where exists (select from ${askedSeries(changed)}
          where asked.zone_id = recent.zone_id and asked.rule_id = recent.rule_id)
        or rare >= ${atLeast} and rare <= events * ${share}
          and (days.stopped <= days.logged and recent.stopped > 0
            or days.logged <= days.stopped and recent.logged > 0)
      order by rare / greatest(events, 1), 1, 2 limit ${limit})
    select recent.zone_id as "zoneId", recent.rule_id as "ruleId", (
      select coalesce(json_agg(json_build_array((extract(epoch from ${b.startsAt}) / 3600)::integer,
        ${STOPPED}, ${b.logged}) order by ${b.startsAt}), '[]'::json)
      from ${ruleBuckets} ${b} where ${isOfRule} and ${b.width} = (select 3600)
        and ${b.startsAt} >= to_timestamp(${fromHour}::float8 * 3600)) as hours
    from asked recent`);
  return rows;
}

export interface StoredAction extends SeriesKey {
  /** Since the epoch. */
  readonly minute: number;
  readonly action: string | null;
  /** Hostile text; empty if it is not known. */
  readonly ip: string;
}

/** Returns the newest `limit` events of each rule after `afterMs`, in the order of time. */
export async function readRuleActions(
  db: Queryable,
  series: readonly SeriesKey[],
  { afterMs, limit }: { afterMs: number; limit: number },
): Promise<StoredAction[]> {
  const { rows } = await db.execute<{ [Key in keyof StoredAction]: StoredAction[Key] }>(sql`
    select asked.zone_id as "zoneId", asked.rule_id as "ruleId", found.action,
      floor(extract(epoch from found.occurred_at) / 60)::integer as minute,
      case when found.ip = 'erased' then '' else coalesce(left(found.ip, 300), '') end as ip
    from ${askedSeries(series)}
    cross join lateral (
      select ${e.occurredAt}, ${e.action}, ${e.ip} from ${wafEvents} ${e}
      where ${e.zoneId} = asked.zone_id and ${e.ruleId} = asked.rule_id
        and ${e.occurredAt} >= ${new Date(afterMs)}
      order by ${e.occurredAt} desc limit ${limit}) found
    order by found.occurred_at`);
  return rows;
}
