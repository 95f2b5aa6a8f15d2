import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import type { SeriesKey } from "./spikes.ts";

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
  const ofZones = zoneIds === null ? sql`` : sql`and zone_id = any(${sql.param([...zoneIds])}::integer[])`;
  const { rows } = await db.execute<{ [Key in keyof ActivityPoint]: ActivityPoint[Key] }>(sql`
    select zone_id as "zoneId",
      (floor(extract(epoch from starts_at) * 1000 / ${stepMs}::float8) * ${stepMs}::float8)::float8 as "startsAt",
      sum(blocked)::float8 as blocked, sum(challenged)::float8 as challenged, sum(logged)::float8 as logged,
      sum(other)::float8 as other
    from rule_buckets
    where width = ${width} and starts_at >= ${new Date(fromMs)} and starts_at < ${new Date(toMs)} ${ofZones}
    group by 1, 2 order by 1, 2`);
  return rows;
}

/** Returns the counts of these rules in `points` equal parts of [fromMs, toMs), oldest first, by zone and rule. */
export async function readRuleSparklines(
  db: Queryable,
  series: readonly SeriesKey[],
  { width, fromMs, toMs, points }: Omit<ActivityQuery, "zoneIds" | "stepMs"> & { readonly points: number },
): Promise<ReadonlyMap<string, number[]>> {
  const stepMs = (toMs - fromMs) / points;
  const { rows } = await db.execute<{ zoneId: number; ruleId: string; step: number; total: number }>(sql`
    select b.zone_id as "zoneId", b.rule_id as "ruleId", sum(b.total)::float8 as total,
      floor((extract(epoch from b.starts_at) * 1000 - ${fromMs}::float8) / ${stepMs}::float8)::integer as step
    from unnest(${sql.param(series.map(({ zoneId }) => zoneId))}::integer[],
      ${sql.param(series.map(({ ruleId }) => ruleId))}::text[]) as asked(zone_id, rule_id)
    join rule_buckets b using (zone_id, rule_id)
    where b.width = ${width} and b.starts_at >= ${new Date(fromMs)} and b.starts_at < ${new Date(toMs)}
    group by 1, 2, 4`);
  const lines = new Map(series.map((key) => [sparklineKey(key), Array.from({ length: points }, () => 0)]));
  for (const { step, total, ...key } of rows) {
    const line = lines.get(sparklineKey(key));
    if (line !== undefined) line[Math.min(step, points - 1)] = total;
  }
  return lines;
}

export function sparklineKey({ zoneId, ruleId }: SeriesKey): string {
  return `${zoneId}/${ruleId}`;
}
