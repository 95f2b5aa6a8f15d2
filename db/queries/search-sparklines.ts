import { type SQL, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { type Span, toCondition } from "./search-condition.ts";
import { daysOfGroups } from "./search-day-groups.ts";
import { type CountedDay, cutOut } from "./search-days.ts";
import { type GroupBucket, type GroupKey, isOfGroup, wantedKeys } from "./search-group-parts.ts";
import { type GroupQuery, SEARCH_COLUMNS } from "./search-query.ts";

const MINUTE_MS = 60_000;
const MINUTES = 1_440;
/** A minute in which one bucket ends and another begins. */
const SPLIT = -1;

interface Strip {
  readonly day: string;
  readonly at: number;
  readonly width: number;
  readonly counts: Buffer;
}

/**
 * The sparklines of a page of groups, in its order. Days that were counted in advance come from their minutes, where
 * the groups are of one dimension and nothing else is asked; minutes that two buckets share, and all else, from events.
 */
export async function readSparklines(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  { keys, days }: { keys: readonly GroupKey[]; days: readonly CountedDay[] },
): Promise<number[][]> {
  const stripped = daysOfGroups(query, days).map(({ day }) => day);
  if (stripped.length > 0) return addUp(tx, zoneId, query, keys, stripped);
  return fill(query, keys, await readBuckets(tx, zoneId, query, keys, [query]));
}

async function addUp(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  keys: readonly GroupKey[],
  days: readonly string[],
): Promise<number[][]> {
  const strips = await readStrips(tx, zoneId, query, keys, days);
  const buckets = new Map(days.map((day) => [day, bucketsOfDay(day, query.bucketStarts)]));
  const rest = cutOut(
    query,
    days.map((day) => ({ day })),
  );
  const split = [...buckets].flatMap(([day, ofMinute]) => splitMinutes(day, ofMinute) ?? []);
  const sparklines = fill(query, keys, [
    ...(rest.length > 0 ? await readBuckets(tx, zoneId, query, keys, rest) : []),
    ...(split.length > 0 ? await readSplitMinutes(tx, zoneId, query, keys, split) : []),
  ]);
  for (const { day, at, width, counts } of strips) {
    const line = sparklines[at - 1];
    const ofMinute = buckets.get(day);
    if (line === undefined || ofMinute === undefined) continue;
    for (let minute = 0, byte = 0; minute < MINUTES; minute++, byte += width) {
      const bucket = ofMinute[minute] ?? SPLIT;
      if (bucket !== SPLIT) line[bucket] = (line[bucket] ?? 0) + counts.readUIntBE(byte, width);
    }
  }
  return sparklines;
}

async function readStrips(
  tx: Queryable,
  zoneId: number,
  { groupBy }: GroupQuery,
  keys: readonly GroupKey[],
  days: readonly string[],
): Promise<Strip[]> {
  const [dimension] = groupBy;
  if (dimension === undefined) return [];
  const found = await tx.execute<{ day: string; at: number; width: number; counts: Buffer }>(sql`
    select to_char(s.day, 'YYYY-MM-DD') as day, w.at::integer as at, s.width, s.counts
    from ${wantedKeys(groupBy, keys)} join minute_strips s on s.value = w.k0
    where s.zone_id = ${zoneId} and s.day = any(${sql.param(days)}::date[])
      and s.dimension = ${SEARCH_COLUMNS[dimension]}`);
  return found.rows;
}

/** The bucket of each minute of a day. */
function bucketsOfDay(day: string, bucketStarts: readonly number[]): Int32Array {
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
function splitMinutes(day: string, ofMinute: Int32Array): { day: string; starts: number[] } | null {
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
async function readSplitMinutes(
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

async function readBuckets(
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

function fill(
  { buckets }: GroupQuery,
  keys: readonly GroupKey[],
  counts: readonly GroupBucket[],
): number[][] {
  const sparklines = keys.map(() => Array.from({ length: buckets }, () => 0));
  for (const { at, bucket, total } of counts) {
    const line = sparklines[at - 1];
    if (line !== undefined) line[bucket] = (line[bucket] ?? 0) + total;
  }
  return sparklines;
}
