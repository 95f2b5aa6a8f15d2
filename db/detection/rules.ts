/** Rules and their counts over time. */

import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { IMPORTED } from "#model/covered-hour.ts";
import { keyOf, type SeriesKey } from "#model/fingerprint.ts";
import type { RuleSort } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { ruleBuckets } from "../schema/rules.ts";
import { spikes } from "../schema/spikes.ts";
import { askedSeries } from "./trends.ts";

const b = alias(ruleBuckets, "b");
const s = alias(spikes, "s");
const w = alias(coverageWindows, "w");

/** Sort keys whose value changes while events of the span still arrive. */
type LiveSort = Exclude<RuleSort, "rule">;

/** Length of the time before the span from which a rule's usual level is taken. */
const BASELINE_DAYS = 28;

interface RulesQuery {
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
  /** Events of a span of the same length at the level of the hours without a gap of the 28 days before; null if there is none. */
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
  const isKnown = sql`${w.zoneId} = page.zone_id and ${w.startsAt} >= ${before} and ${w.startsAt} < ${from}
    and (${w.state} <> 'gap' or ${w.gapReason} = ${IMPORTED})`;
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
        and ${b.startsAt} in (select ${w.startsAt} from ${coverageWindows} ${w} where ${isKnown})) history
    cross join lateral (
      select count(*)::float8 as hours from ${coverageWindows} ${w} where ${isKnown}) known
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

interface ActivityPoint {
  readonly zoneId: number;
  /** Epoch ms, a multiple of the step. */
  readonly startsAt: number;
  readonly blocked: number;
  readonly challenged: number;
  readonly logged: number;
  readonly other: number;
}

interface ActivityQuery {
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  /** Seconds. */
  readonly width: 60 | 3_600 | 86_400;
  /** A multiple of the width. */
  readonly stepMs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Returns the events by action of every step that has some, by zone and time. */
export async function readActivity(db: Queryable, query: ActivityQuery): Promise<ActivityPoint[]> {
  const { zoneIds, width, stepMs, fromMs, toMs } = query;
  const ofZones =
    zoneIds === null ? sql`` : sql`and ${b.zoneId} = any(${sql.param([...zoneIds])}::integer[])`;
  // date_bin cuts times five times as fast as arithmetic on their epochs.
  const { rows } = await db.execute<{ [Key in keyof ActivityPoint]: ActivityPoint[Key] }>(sql`
    with steps as (
      select ${b.zoneId}, date_bin(${toInterval(stepMs)}, ${b.startsAt}, to_timestamp(0)) as step,
        sum(${b.blocked})::float8 as blocked, sum(${b.challenged})::float8 as challenged,
        sum(${b.logged})::float8 as logged, sum(${b.other})::float8 as other
      from ${ruleBuckets} ${b}
      where ${b.width} = ${width} and ${b.startsAt} >= ${new Date(fromMs)}
        and ${b.startsAt} < ${new Date(toMs)} ${ofZones}
      group by 1, 2)
    select zone_id as "zoneId", ${epochMs(sql`step`)} as "startsAt", blocked, challenged, logged, other
    from steps order by 1, 2`);
  return rows;
}

/**
 * Returns the counts of these rules in at most `points` parts of [fromMs, toMs), oldest first, by zone and rule. A part is
 * a whole number of buckets, because a bucket counts under its start alone; the last part may be shorter.
 */
export async function readRuleSparklines(
  db: Queryable,
  series: readonly SeriesKey[],
  { width, fromMs, toMs, points }: Omit<ActivityQuery, "zoneIds" | "stepMs"> & { readonly points: number },
): Promise<ReadonlyMap<string, number[]>> {
  const widthMs = width * 1_000;
  const stepMs = Math.ceil((toMs - fromMs) / points / widthMs) * widthMs;
  const parts = Math.ceil((toMs - fromMs) / stepMs);
  // One search in the index for each rule: a join would read the buckets of every rule in the span.
  const { rows } = await db.execute<{ zoneId: number; ruleId: string; startsAt: number; total: number }>(sql`
    select asked.zone_id as "zoneId", asked.rule_id as "ruleId", total,
      ${epochMs(sql`step`)} as "startsAt"
    from ${askedSeries(series)}
    cross join lateral (
      select date_bin(${toInterval(stepMs)}, ${b.startsAt}, ${new Date(fromMs)}) as step,
        sum(${b.total})::float8 as total
      from ${ruleBuckets} ${b}
      where ${b.zoneId} = asked.zone_id and ${b.ruleId} = asked.rule_id and ${b.width} = ${width}
        and ${b.startsAt} >= ${new Date(fromMs)} and ${b.startsAt} < ${new Date(toMs)}
      group by 1) counted`);
  const lines = new Map(series.map((key) => [keyOf(key), Array.from({ length: parts }, () => 0)]));
  for (const { startsAt, total, ...key } of rows) {
    const line = lines.get(keyOf(key));
    if (line !== undefined) line[Math.round((startsAt - fromMs) / stepMs)] = total;
  }
  return lines;
}

function toInterval(ms: number): SQL {
  return sql`${`${ms} milliseconds`}::interval`;
}
