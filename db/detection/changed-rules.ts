import { and, eq, gte, inArray, lt, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";

interface ChangedRule {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly total: number;
  /** Count of the span of the same length before. */
  readonly before: number;
}

/** Returns the rules whose events of whole UTC days differ most from those of as many days before. */
export function readChangedRules(
  db: Queryable,
  {
    zoneIds,
    fromMs,
    toMs,
    limit,
  }: { zoneIds: readonly number[]; fromMs: number; toMs: number; limit: number },
): Promise<ChangedRule[]> {
  const { zoneId, ruleId, startsAt, total, width } = ruleBuckets;
  const from = new Date(fromMs).toISOString();
  const now = sql<number>`coalesce(sum(${total}) filter (where ${startsAt} >= ${from}::timestamptz), 0)::float8`;
  const before = sql<number>`coalesce(sum(${total}) filter (where ${startsAt} < ${from}::timestamptz), 0)::float8`;
  return db
    .select({ zoneId, ruleId, total: now, before })
    .from(ruleBuckets)
    .where(
      and(
        eq(width, 86_400),
        inArray(zoneId, [...zoneIds]),
        gte(startsAt, new Date(2 * fromMs - toMs)),
        lt(startsAt, new Date(toMs)),
      ),
    )
    .groupBy(zoneId, ruleId)
    .having(sql`${now} <> ${before}`)
    .orderBy(sql`abs(${now} - ${before}) desc`, zoneId, sql`${ruleId} collate "C"`)
    .limit(limit);
}
