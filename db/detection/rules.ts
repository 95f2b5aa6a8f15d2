import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { RuleSort } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";
import { spikes } from "../schema/spikes.ts";

const b = alias(ruleBuckets, "b");
const s = alias(spikes, "s");
const w = alias(coverageWindows, "w");

/** Sort keys whose value changes while events of the span still arrive. */
type LiveSort = Exclude<RuleSort, "rule">;

/** Length of the time before the span from which a rule's usual level is taken. */
const BASELINE_DAYS = 28;

export interface RulesQuery {
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  /** Seconds. `fromMs` and `toMs` are multiples of it. */
  readonly width: 60 | 3_600 | 86_400;
  readonly fromMs: number;
  readonly toMs: number;
  readonly sort: RuleSort;
  /** The last rule of the previous page. */
  readonly after: { readonly value: number | null; readonly zoneId: number; readonly ruleId: string } | null;
  readonly limit: number;
}

export interface RuleRow {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly total: number;
  readonly blocked: number;
  readonly logged: number;
  readonly challenged: number;
  readonly other: number;
  /** The minute of the last event, epoch ms; the start of its hour or day if the minutes are no longer kept. */
  readonly lastSeen: number;
  /** Events of a span of the same length at the level of the 28 days before; null if the zone was not watched then. */
  readonly usual: number | null;
  readonly openSpikeId: number | null;
}

/**
 * Returns the rules that have events in the span, highest value first, then by zone and rule; or by zone and rule
 * alone.
 */
export async function readRules(db: Queryable, query: RulesQuery): Promise<RuleRow[]> {
  const { width, sort, after, limit } = query;
  const [from, to] = [new Date(query.fromMs), new Date(query.toMs)];
  const spanHours = (query.toMs - query.fromMs) / 3_600_000;
  const before = new Date(query.fromMs - BASELINE_DAYS * 86_400_000);
  const { rows } = await db.execute<{ [Key in keyof RuleRow]: RuleRow[Key] }>(sql`
    with summed as (
      select ${b.zoneId}, ${b.ruleId}, sum(${b.total})::float8 as total, sum(${b.blocked})::float8 as blocked,
        sum(${b.logged})::float8 as logged, sum(${b.challenged})::float8 as challenged,
        sum(${b.other})::float8 as other, max(${b.startsAt}) as last_bucket
      from ${ruleBuckets} ${b}
      where ${b.width} = ${width} and ${b.startsAt} >= ${from} and ${b.startsAt} < ${to} ${ofZones(query.zoneIds)}
      group by ${b.zoneId}, ${b.ruleId}),
    seen as (
      select summed.*, ${epochMs(sql`coalesce((select max(${b.startsAt}) from ${ruleBuckets} ${b}
        where ${b.zoneId} = summed.zone_id and ${b.ruleId} = summed.rule_id and ${b.width} = 60
          and ${b.startsAt} >= last_bucket and ${b.startsAt} < ${to}), last_bucket)`)} as "lastSeen"
      from summed),
    page as (
      select * from seen ${isAfter(sort, after)}
      order by ${orderOf(sort)} limit ${limit})
    select zone_id as "zoneId", rule_id as "ruleId", total, blocked, logged, challenged, other, "lastSeen",
      history.events / nullif(known.hours, 0) * ${spanHours}::float8 as usual,
      (select ${s.id}::float8 from ${spikes} ${s}
        where ${s.zoneId} = page.zone_id and ${s.ruleId} = page.rule_id and ${s.closedAt} is null) as "openSpikeId"
    from page
    cross join lateral (
      select coalesce(sum(${b.total}), 0)::float8 as events from ${ruleBuckets} ${b}
      where ${b.zoneId} = page.zone_id and ${b.ruleId} = page.rule_id and ${b.width} = 3600
        and ${b.startsAt} >= ${before} and ${b.startsAt} < ${from}) history
    cross join lateral (
      select count(*)::float8 as hours from ${coverageWindows} ${w}
      where ${w.zoneId} = page.zone_id and ${w.startsAt} >= ${before} and ${w.startsAt} < ${from}
        and ${w.state} <> 'gap') known
    order by ${orderOf(sort)}`);
  return rows;
}

const VALUES: Readonly<Record<LiveSort, SQL>> = {
  total: sql.raw("total"),
  blocked: sql.raw("blocked"),
  lastSeen: sql.raw(`"lastSeen"`),
};

function ofZones(zoneIds: readonly number[] | null): SQL {
  return zoneIds === null ? sql`` : sql`and zone_id = any(${sql.param([...zoneIds])}::integer[])`;
}

function orderOf(sort: RuleSort): SQL {
  const named = sql`zone_id, rule_id collate "C"`;
  return sort === "rule" ? named : sql`${VALUES[sort]} desc, ${named}`;
}

function isAfter(sort: RuleSort, after: RulesQuery["after"]): SQL {
  if (after === null) return sql``;
  const { value, zoneId, ruleId } = after;
  const isNamedLater = sql`(zone_id, rule_id collate "C") > (${zoneId}::integer, ${ruleId}::text)`;
  if (sort === "rule") return sql`where ${isNamedLater}`;
  const column = VALUES[sort];
  return sql`where ${column} < ${value}::float8 or (${column} = ${value}::float8 and ${isNamedLater})`;
}
