import { type SQL, sql } from "drizzle-orm";
import type { Span } from "../../src/model/span.ts";
import type { Queryable } from "../client.ts";
import { toCondition } from "./search-condition.ts";
import {
  type GroupBucket,
  type GroupKey,
  isOfGroup,
  mayBeOfGroup,
  wantedKeys,
} from "./search-group-parts.ts";
import type { GroupQuery } from "./search-query.ts";

/** The sparklines of a page of groups, in its order, from events. */
export async function readSparklines(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  keys: readonly GroupKey[],
): Promise<number[][]> {
  const sparklines = keys.map(() => Array.from({ length: query.buckets }, () => 0));
  for (const { at, bucket, total } of await readBuckets(tx, zoneId, query, keys, [query])) {
    const line = sparklines[at - 1];
    if (line !== undefined) line[bucket] = (line[bucket] ?? 0) + total;
  }
  return sparklines;
}

export async function readBuckets(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  keys: readonly GroupKey[],
  spans: readonly Span[],
): Promise<GroupBucket[]> {
  const found = await tx.execute<{ at: number; bucket: number; total: number }>(sql`
    select w.at::integer as at, ${bucketOf(query)} as bucket, count(*)::float8 as total
    from waf_events e join ${wantedKeys(query.groupBy, keys)} on ${isOfGroup(query.groupBy)}
    where ${toCondition(zoneId, query, spans)} and ${mayBeOfGroup(query.groupBy, keys)} group by 1, 2`);
  return found.rows;
}

function bucketOf({ bucketStarts }: GroupQuery): SQL {
  if (bucketStarts.length === 0) return sql`0`;
  const starts = bucketStarts.map((ms) => new Date(ms).toISOString());
  return sql`width_bucket(e.occurred_at, ${sql.param(starts)}::timestamptz[])`;
}
