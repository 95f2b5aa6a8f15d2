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
  return fill(query, keys, await readBuckets(tx, zoneId, query, keys));
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
  const spans = [
    ...cutOut(
      query,
      days.map((day) => ({ day })),
    ),
    ...[...buckets].flatMap(([day, ofMinute]) => splitMinutes(day, ofMinute)),
  ];
  const sparklines = fill(query, keys, await readSpans(tx, zoneId, query, keys, spans));
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

function splitMinutes(day: string, ofMinute: Int32Array): Span[] {
  const dayStart = Date.parse(`${day}T00:00:00Z`);
  return Array.from(ofMinute).flatMap((bucket, minute) => {
    const from = dayStart + minute * MINUTE_MS;
    return bucket === SPLIT ? [{ from, to: from + MINUTE_MS }] : [];
  });
}

/** Many short spans, one look into the key's index each. */
async function readSpans(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  keys: readonly GroupKey[],
  spans: readonly Span[],
): Promise<GroupBucket[]> {
  if (spans.length === 0) return [];
  const moments = (read: (span: Span) => number) =>
    sql`${sql.param(spans.map((span) => new Date(read(span)).toISOString()))}::timestamptz[]`;
  const [dimension] = query.groupBy;
  const column = sql.raw(dimension === undefined ? "''" : SEARCH_COLUMNS[dimension]);
  const found = await tx.execute<{ at: number; bucket: number; total: number }>(sql`
    select w.at::integer as at, ${bucketOf(query)} as bucket, count(*)::float8 as total
    from unnest(${moments(({ from }) => from)}, ${moments(({ to }) => to)}) as span(starts, ends)
    cross join lateral (
      select occurred_at, ${column} from waf_events
      where zone_id = ${zoneId} and occurred_at >= span.starts and occurred_at < span.ends offset 0) e
    join ${wantedKeys(query.groupBy, keys)} on ${isOfGroup(query.groupBy)} group by 1, 2`);
  return found.rows;
}

async function readBuckets(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  keys: readonly GroupKey[],
): Promise<GroupBucket[]> {
  const found = await tx.execute<{ at: number; bucket: number; total: number }>(sql`
    select w.at::integer as at, ${bucketOf(query)} as bucket, count(*)::float8 as total
    from waf_events e join ${wantedKeys(query.groupBy, keys)} on ${isOfGroup(query.groupBy)}
    where ${toCondition(zoneId, query)} group by 1, 2`);
  return found.rows;
}

function bucketOf({ bucketStarts }: GroupQuery): SQL {
  if (bucketStarts.length === 0) return sql`0`;
  const starts = bucketStarts.map((ms) => new Date(ms).toISOString());
  return sql`width_bucket(e.occurred_at, ${sql.param(starts)}::timestamptz[])`;
}

function fill({ buckets }: GroupQuery, keys: readonly GroupKey[], counts: readonly GroupBucket[]): number[][] {
  const sparklines = keys.map(() => Array.from({ length: buckets }, () => 0));
  for (const { at, bucket, total } of counts) {
    const line = sparklines[at - 1];
    if (line !== undefined) line[bucket] = (line[bucket] ?? 0) + total;
  }
  return sparklines;
}
