import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { keyOf, type SeriesKey } from "#model/series-key.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";
import { askedSeries } from "./asked-series.ts";

const b = alias(ruleBuckets, "b");

export interface ActivityPoint {
  readonly zoneId: number;
  /** Epoch ms, a multiple of the step. */
  readonly startsAt: number;
  readonly blocked: number;
  readonly challenged: number;
  readonly logged: number;
  readonly other: number;
}

export interface ActivityQuery {
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
  // One look into the index for each rule: a join would read the buckets of every rule in the span.
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
