import { type SQL, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { unpackTimes } from "../merge-tallies.ts";
import { type Span, toCondition, toMoment } from "./search-condition.ts";
import { readDayTimes } from "./search-cubes.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Passing over fewer events costs less than reading where they are. */
const WORTH_SKIPPING = 500;

/** A part of a window and how many events of the zone lie in it. */
export interface Segment extends Span {
  readonly total: number;
  /** A whole closed day, `yyyy-mm-dd`, whose times are known. */
  readonly day: string | null;
}

type SegmentRow = {
  kind: "day" | "part" | "watched" | "hour" | "edge";
  at: number;
  total: number;
  day: string | null;
  /** Of a part of a counted day. */
  times: Buffer | null;
};

/**
 * Every event of a zone in a window, as this transaction sees it, in few small parts, newest first: closed days that were
 * counted in advance, hours as ingest counts them while it stores, and what is left counted from events. Days past
 * retention hold nothing, whatever counts are left of them. An hour's counter is believed while its day is open only:
 * a closed day is watched, so that nothing can change it unnoticed.
 */
export async function readSegments(tx: Queryable, zoneId: number, window: Span): Promise<Segment[]> {
  const first = Math.ceil(window.from / HOUR_MS) * HOUR_MS;
  const end = Math.floor(window.to / HOUR_MS) * HOUR_MS;
  if (end <= first) return [{ ...window, total: await countEvents(tx, zoneId, [window]), day: null }];
  const edges = [
    { from: window.from, to: first },
    { from: end, to: window.to },
  ].filter(({ from, to }) => to > from);
  const parts = [
    countKept(zoneId, { from: first, to: end }),
    ...edges.map((edge) => countEdge(zoneId, edge)),
  ];
  const found = await tx.execute<SegmentRow>(sql.join(parts, sql` union all `));
  const known = found.rows.flatMap((row) => toSegment(row, edges, { from: first, to: end }) ?? []);
  const watched = found.rows.flatMap(({ kind, at }) =>
    kind === "watched" ? [{ from: Math.max(at, first), to: Math.min(at + DAY_MS, end) }] : [],
  );
  for (const span of watched) {
    known.push({ ...span, total: await countEvents(tx, zoneId, [span]), day: null });
  }
  return known.sort((one, other) => other.from - one.from);
}

/** Whole hours: what is known of the closed days among them, and the hours of the open ones. */
function countKept(zoneId: number, { from, to }: Span): SQL {
  const utc = (day: string) => sql.raw(`${day}::timestamp at time zone 'UTC'`);
  return sql`
    (with kept as materialized (
      select to_date(right(c.relname, 8), 'YYYYMMDD') as day
      from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'waf_events'::regclass),
    days as materialized (
      select k.day, ${utc("k.day")} as starts, d.day is not null as watched, d.built_marks = d.marks as is_true, d.total, d.times
      from kept k left join cube_days d on d.zone_id = ${zoneId} and d.day = k.day
      where ${utc("k.day")} > ${toMoment(from - DAY_MS)} and ${utc("k.day")} < ${toMoment(to)})
    select case when is_true is not true then 'watched' when is_whole then 'day' else 'part' end as kind,
      (extract(epoch from starts) * 1000)::float8 as at, total::float8 as total,
      to_char(day, 'YYYY-MM-DD') as day, case when is_true and not is_whole then times end as times
    from days cross join lateral (
      select starts >= ${toMoment(from)} and starts + interval '24 hours' <= ${toMoment(to)} as is_whole) d
    where watched
    union all
    select 'hour', (extract(epoch from w.starts_at) * 1000)::float8, stored_count, null, null
    from days join coverage_windows w on w.zone_id = ${zoneId}
      and w.starts_at >= greatest(starts, ${toMoment(from)})
      and w.starts_at < least(starts + interval '24 hours', ${toMoment(to)}) and stored_count > 0
    where not watched)`;
}

function countEdge(zoneId: number, edge: Span): SQL {
  return sql`
    select 'edge', ${edge.from}::float8, count(*)::float8, null, null from waf_events e
    where ${toCondition(zoneId, { ...edge, clauses: [] })}`;
}

function toSegment(
  { kind, at, total, day, times }: SegmentRow,
  edges: readonly Span[],
  whole: Span,
): Segment | null {
  switch (kind) {
    case "part": {
      const span = { from: Math.max(at, whole.from), to: Math.min(at + DAY_MS, whole.to) };
      const isInside = (ms: number) => at + ms >= span.from && at + ms < span.to;
      return { ...span, total: unpackTimes(times ?? Buffer.alloc(0)).filter(isInside).length, day: null };
    }
    case "day":
      return { from: at, to: at + DAY_MS, total, day };
    case "hour":
      return { from: at, to: at + HOUR_MS, total, day: null };
    case "edge":
      return { from: at, to: edges.find(({ from }) => from === at)?.to ?? at, total, day: null };
    case "watched":
      return null;
    default:
      return kind satisfies never;
  }
}

async function countEvents(tx: Queryable, zoneId: number, spans: readonly Span[]): Promise<number> {
  const [first] = spans;
  if (first === undefined) return 0;
  const found = await tx.execute<{ total: number }>(sql`
    select count(*)::float8 as total from waf_events e
    where ${toCondition(zoneId, { ...first, clauses: [] }, spans)}`);
  return found.rows[0]?.total ?? 0;
}

/** Where the events lie that a page shows: the newest `skip` of the span are before it. */
export interface Place extends Span {
  readonly skip: number;
}

/** The least part of the window that holds `limit` events, or all there are, after its newest `offset`. */
export async function locatePage(
  tx: Queryable,
  zoneId: number,
  segments: readonly Segment[],
  { offset, limit }: { offset: number; limit: number },
): Promise<Place> {
  let before = 0;
  let index = 0;
  for (const { total } of segments) {
    if (before + total > offset) break;
    before += total;
    index++;
  }
  const newest = segments[index];
  if (newest === undefined) return { from: 0, to: 0, skip: 0 };
  const { to, passed } = await skipEvents(tx, zoneId, newest, offset - before);
  let { from } = newest;
  let held = before + newest.total;
  for (let next = index + 1; held < offset + limit && next < segments.length; next++) {
    from = segments[next]?.from ?? from;
    held += segments[next]?.total ?? 0;
  }
  return { from, to, skip: offset - before - passed };
}

/** The end of the millisecond in which the event after the newest `skip` of a segment lies, and how many are after it. */
async function skipEvents(tx: Queryable, zoneId: number, { day, from, to, total }: Segment, skip: number) {
  if (day === null || skip < WORTH_SKIPPING) return { to, passed: 0 };
  const times = await readDayTimes(tx, { zoneId, day });
  const ms = times[total - 1 - skip];
  if (times.length !== total || ms === undefined) return { to, passed: 0 };
  let end = total - skip;
  while (times[end] === ms) end++;
  return { to: from + ms + 1, passed: total - end };
}
