import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

export interface TrendQuery {
  readonly zoneId: number;
  /** Null sums all rules; '' selects the events without a rule. */
  readonly ruleId: string | null;
  /** Seconds. */
  readonly width: 60 | 3_600 | 86_400;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface TrendBucket {
  /** Epoch ms. */
  readonly startsAt: number;
  readonly total: number;
  readonly blocked: number;
  readonly logged: number;
  readonly challenged: number;
  readonly other: number;
}

/** Returns the buckets that hold events and begin in [fromMs, toMs), oldest first. */
export async function readTrend(db: Queryable, query: TrendQuery): Promise<TrendBucket[]> {
  const { zoneId, ruleId, width, fromMs, toMs } = query;
  const { rows } = await db.execute<{ [Key in keyof TrendBucket]: TrendBucket[Key] }>(sql`
    select (extract(epoch from starts_at) * 1000)::float8 as "startsAt", sum(total)::float8 as total,
      sum(blocked)::float8 as blocked, sum(logged)::float8 as logged, sum(challenged)::float8 as challenged,
      sum(other)::float8 as other
    from rule_buckets
    where zone_id = ${zoneId} and width = ${width} and starts_at >= ${new Date(fromMs)} and starts_at < ${new Date(toMs)}
      ${ruleId === null ? sql`` : sql`and rule_id = ${ruleId}`}
    group by starts_at order by starts_at`);
  return rows;
}
