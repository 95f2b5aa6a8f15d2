import { and, eq, gte, lt, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";

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
export function readTrend(db: Queryable, query: TrendQuery): Promise<TrendBucket[]> {
  const { zoneId, ruleId, width, fromMs, toMs } = query;
  const { startsAt, total, blocked, logged, challenged, other } = ruleBuckets;
  const sum = (column: PgColumn) => sql<number>`sum(${column})::float8`;
  return db
    .select({
      startsAt: epochMs(startsAt),
      total: sum(total),
      blocked: sum(blocked),
      logged: sum(logged),
      challenged: sum(challenged),
      other: sum(other),
    })
    .from(ruleBuckets)
    .where(
      and(
        eq(ruleBuckets.zoneId, zoneId),
        eq(ruleBuckets.width, width),
        gte(startsAt, new Date(fromMs)),
        lt(startsAt, new Date(toMs)),
        ruleId === null ? undefined : eq(ruleBuckets.ruleId, ruleId),
      ),
    )
    .groupBy(startsAt)
    .orderBy(startsAt);
}
