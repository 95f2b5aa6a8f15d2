import { type SQL, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { type Span, toCondition } from "./search-condition.ts";
import { type GroupBucket, type GroupKey, isOfGroup, wantedKeys } from "./search-group-parts.ts";
import { type GroupQuery, SEARCH_COLUMNS } from "./search-query.ts";

const MINUTE_MS = 60_000;
const MINUTES = 1_440;
/** A minute in which one bucket ends and another begins. */
export const SPLIT = -1;

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

/** The bucket of a moment, epoch ms: how many of the starts are not after it. */
export function bucketOfTime(ms: number, bucketStarts: readonly number[]): number {
  let [low, high] = [0, bucketStarts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((bucketStarts[middle] as number) <= ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The bucket of each minute of a day (UTC, `yyyy-mm-dd`), SPLIT where there are several. */
export function bucketsOfDay(day: string, bucketStarts: readonly number[]): Int32Array {
  const ofMinute = new Int32Array(MINUTES);
  const dayStart = Date.parse(`${day}T00:00:00Z`);
  let bucket = 0;
  for (let minute = 0; minute < MINUTES; minute++) {
    const start = dayStart + minute * MINUTE_MS;
    while ((bucketStarts[bucket] ?? Number.POSITIVE_INFINITY) <= start) bucket++;
    const isSplit = (bucketStarts[bucket] ?? Number.POSITIVE_INFINITY) < start + MINUTE_MS;
    ofMinute[minute] = isSplit ? SPLIT : bucket;
  }
  return ofMinute;
}

/** The minutes of a day that two buckets share, as epoch ms of their starts; null where there is none. */
export function splitMinutes(day: string, ofMinute: Int32Array): { day: string; starts: number[] } | null {
  const dayStart = Date.parse(`${day}T00:00:00Z`);
  const starts = Array.from(ofMinute).flatMap((bucket, minute) =>
    bucket === SPLIT ? [dayStart + minute * MINUTE_MS] : [],
  );
  return starts.length === 0 ? null : { day, starts };
}

/**
 * Hundreds of single minutes, one look into the key's index each. Asked of the days' partitions by name: through the
 * whole table every look would begin with finding the partition, which takes longer than the look. The log id is named
 * to keep the planner to the key: it would rather try each rule's minute in the index by rule.
 */
export async function readSplitMinutes(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  keys: readonly GroupKey[],
  split: readonly { readonly day: string; readonly starts: readonly number[] }[],
): Promise<GroupBucket[]> {
  const [dimension] = query.groupBy;
  if (dimension === undefined) return [];
  const column = sql.raw(SEARCH_COLUMNS[dimension]);
  const looks = split.map(({ day, starts }) => {
    const moments = sql.param(starts.map((ms) => new Date(ms).toISOString()));
    return sql`
      select e.occurred_at, e.${column} from unnest(${moments}::timestamptz[]) as minute(starts)
      cross join lateral (
        select occurred_at, ${column} from ${sql.identifier(`waf_events_${day.replaceAll("-", "")}`)}
        where zone_id = ${zoneId} and occurred_at >= minute.starts
          and occurred_at < minute.starts + interval '1 minute' and log_id >= '' offset 0) e`;
  });
  const found = await tx.execute<{ at: number; bucket: number; total: number }>(sql`
    select w.at::integer as at, ${bucketOf(query)} as bucket, count(*)::float8 as total
    from (${sql.join(looks, sql` union all `)}) e
    join ${wantedKeys(query.groupBy, keys)} on ${isOfGroup(query.groupBy)} group by 1, 2`);
  return found.rows;
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
    where ${toCondition(zoneId, query, spans)} group by 1, 2`);
  return found.rows;
}

function bucketOf({ bucketStarts }: GroupQuery): SQL {
  if (bucketStarts.length === 0) return sql`0`;
  const starts = bucketStarts.map((ms) => new Date(ms).toISOString());
  return sql`width_bucket(e.occurred_at, ${sql.param(starts)}::timestamptz[])`;
}
