import type pg from "pg";
import { DAY_MS, HOUR_MS } from "../../src/lib/units.ts";
import type { Span } from "../../src/model/span.ts";
import { countBefore, type DayTimes, unpackTimes } from "./day-times.ts";
import { momentOf } from "./search-condition.ts";
import type { CountedVersion, KeptDays, SearchMemory } from "./search-memory.ts";
import { ask, type Statement } from "./search-statement.ts";

/** A part of a window and how many events of the zone lie in it. */
export interface Segment extends Span {
  readonly total: number;
  /** The closed day that it is the whole of, whose times are known. */
  readonly counted: CountedVersion | null;
}

/** A closed day of which a part is asked for. */
type CutDay = CountedVersion & Span;

/** What a window is made of: what one statement can say, and what is still to be looked up. */
export interface Outline {
  readonly segments: readonly Segment[];
  readonly cut: readonly CutDay[];
  /** Closed days that changed since they were counted. */
  readonly stale: readonly Span[];
}

const KEPT: Statement = {
  name: "longwatch_kept_days",
  text: `select (select array_agg(inhrelid order by inhrelid)::text from pg_inherits where inhparent = 'waf_events'::regclass),
      array_agg(to_date(right(c.relname, 8), 'YYYYMMDD') - date '1970-01-01' order by c.relname)::text
    from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'waf_events'::regclass`,
};

/**
 * Takes the zone, runs of days, the hours in question, the two cut hours' parts and their days. An hour's counter is
 * believed while its day is open only: a closed day is watched, so that nothing can change it unnoticed. Of the hour in
 * which the window ends what is behind the end is counted, mostly nothing.
 */
const OUTLINE: Statement = {
  name: "longwatch_window_outline",
  text: `
    with days as materialized (
      select k.day, c.zone_id is not null as is_watched, coalesce(c.built_marks = c.marks, false) as is_true, c.total, c.xmin as version
      from (select first + i as day from unnest($2::date[], $3::integer[]) r(first, days), generate_series(0, days - 1) i) k
        left join cube_days c on c.zone_id = $1::integer and c.day = k.day),
    hours as materialized (
      select (date_part('epoch', w.starts_at) / 3600)::integer as hour, w.stored_count as total
      from days d join coverage_windows w on w.zone_id = $1::integer
        and w.starts_at >= greatest(d.day::timestamp at time zone 'UTC', $4::timestamptz)
        and w.starts_at < least((d.day + 1)::timestamp at time zone 'UTC', $5::timestamptz)
      where not d.is_watched and w.stored_count > 0)
    select (select array_agg(inhrelid order by inhrelid)::text from pg_inherits where inhparent = 'waf_events'::regclass),
      d.days, d.totals, d.versions, d.stale, h.hours, h.totals,
      case when exists (select from days where day = $6::date and not is_watched) then
        (select count(*)::integer from waf_events e
         where e.zone_id = $1::integer and e.occurred_at >= $7::timestamptz and e.occurred_at < $8::timestamptz) else 0 end,
      case when exists (select from days where day = $9::date and not is_watched) then
        (select count(*)::integer from waf_events e
         where e.zone_id = $1::integer and e.occurred_at >= $10::timestamptz and e.occurred_at < $11::timestamptz) else 0 end
    from (select array_agg(day - date '1970-01-01') filter (where is_true)::text as days,
            array_agg(total) filter (where is_true)::text as totals, array_agg(version) filter (where is_true)::text as versions,
            array_agg(day - date '1970-01-01') filter (where is_watched and not is_true)::text as stale from days) d,
      (select array_agg(hour)::text as hours, array_agg(total)::text as totals from hours) h`,
};

type OutlineRow = [
  partitions: string | null,
  days: string | null,
  totals: string | null,
  versions: string | null,
  stale: string | null,
  hours: string | null,
  hourTotals: string | null,
  before: number,
  after: number,
];

const COUNT: Statement = {
  name: "longwatch_span_count",
  text: `select count(*)::float8 from waf_events e
    where e.zone_id = $1::integer and e.occurred_at >= $2::timestamptz and e.occurred_at < $3::timestamptz`,
};

const TIMES: Statement = {
  name: "longwatch_day_times",
  text: `select times from cube_days where zone_id = $1::integer and day = date '1970-01-01' + $2::integer`,
};

/** Which days there are partitions for, as the transaction sees it. */
async function readKeptDays(client: pg.PoolClient): Promise<KeptDays> {
  const [row] = await ask<[string | null, string | null]>(client, KEPT, []);
  const runs: { first: number; days: number }[] = [];
  for (const day of toNumbers(row?.[1])) {
    const last = runs.at(-1);
    if (last !== undefined && last.first + last.days === day) last.days++;
    else runs.push({ first: day, days: 1 });
  }
  return { partitions: row?.[0] ?? "", runs };
}

/** In one statement what a window is made of; null where the partitions are others than `kept`. */
export async function readOutline(
  client: pg.PoolClient,
  zoneId: number,
  window: Span,
  kept: KeptDays,
): Promise<Outline | null> {
  const [row] = await ask<OutlineRow>(client, OUTLINE, toValues(zoneId, window, kept));
  if (row === undefined || (row[0] ?? "") !== kept.partitions) return null;
  return toOutline(zoneId, window, row);
}

function toValues(zoneId: number, window: Span, { runs }: KeptDays): unknown[] {
  const { firstHour, before, after } = cutHours(window);
  const [first, end] = [Math.floor(window.from / DAY_MS), Math.ceil(window.to / DAY_MS)];
  const asked = runs.flatMap((run) => {
    const [from, to] = [Math.max(run.first, first), Math.min(run.first + run.days, end)];
    return to > from ? [{ from, days: to - from }] : [];
  });
  const edge = ({ from, to }: Span) => [dayOf(from), momentOf(from), momentOf(to)];
  return [
    zoneId,
    asked.map(({ from }) => dayOf(from * DAY_MS)),
    asked.map(({ days }) => days),
    momentOf(firstHour),
    momentOf(after.to),
    ...edge(before),
    ...edge(after),
  ];
}

/** The whole hours of a window begin at `firstHour` and end at the end of `after`, which is not part of the window. */
function cutHours({ from, to }: Span): { firstHour: number; before: Span; after: Span } {
  const firstHour = Math.ceil(from / HOUR_MS) * HOUR_MS;
  if (to < firstHour) return { firstHour, before: { from, to }, after: { from: firstHour, to: firstHour } };
  const after = { from: to, to: Math.ceil(to / HOUR_MS) * HOUR_MS };
  return { firstHour, before: { from, to: firstHour }, after };
}

function toOutline(zoneId: number, window: Span, row: OutlineRow): Outline {
  const [, days, totals, versions, stale, hours, hourTotals, before, after] = row;
  const cutOff = cutHours(window);
  const segments: Segment[] = [];
  const cut: CutDay[] = [];
  const [dayTotals, dayVersions] = [toNumbers(totals), toTexts(versions)];
  for (const [index, day] of toNumbers(days).entries()) {
    const span = { from: day * DAY_MS, to: (day + 1) * DAY_MS };
    const counted = { zoneId, day, version: dayVersions[index] ?? "" };
    if (span.from < window.from || span.to > window.to) cut.push({ ...counted, ...clip(span, window) });
    else segments.push({ ...span, total: dayTotals[index] ?? 0, counted });
  }
  const ofHours = toNumbers(hourTotals);
  for (const [index, hour] of toNumbers(hours).entries()) {
    const span = { from: hour * HOUR_MS, to: (hour + 1) * HOUR_MS };
    const total = (ofHours[index] ?? 0) - (span.to === cutOff.after.to ? after : 0);
    segments.push({ ...clip(span, window), total, counted: null });
  }
  if (before > 0) segments.push({ ...cutOff.before, total: before, counted: null });
  return {
    segments,
    cut,
    stale: toNumbers(stale).map((day) => clip({ from: day * DAY_MS, to: (day + 1) * DAY_MS }, window)),
  };
}

/** Of a closed day that is cut, from its times. */
export function toCutSegment({ from, to, day }: CutDay, times: DayTimes): Segment {
  const midnight = day * DAY_MS;
  const total = countBefore(times, to - midnight) - countBefore(times, from - midnight);
  return { from, to, total, counted: null };
}

/**
 * Every event of a zone in a window, as this transaction sees it, in few small parts, newest first: closed days that were
 * counted in advance, hours as ingest counts them while it stores, and what is left counted from events. Days past
 * retention hold nothing, whatever counts are left of them.
 */
export async function readSegments(
  client: pg.PoolClient,
  memory: SearchMemory,
  zoneId: number,
  window: Span,
): Promise<Segment[]> {
  const outline =
    (memory.kept === null ? null : await readOutline(client, zoneId, window, memory.kept)) ??
    (await readOutline(client, zoneId, window, (memory.kept = await readKeptDays(client))));
  if (outline === null) throw new Error("the partitions of waf_events changed within a transaction");
  const segments = [...outline.segments];
  for (const day of outline.cut) segments.push(toCutSegment(day, await readTimes(client, memory, day)));
  for (const span of outline.stale) {
    const values = [zoneId, momentOf(span.from), momentOf(span.to)];
    const [row] = await ask<[number]>(client, COUNT, values);
    segments.push({ ...span, total: row?.[0] ?? 0, counted: null });
  }
  return segments.sort((one, other) => other.from - one.from);
}

/** The times of a closed day of which this transaction sees this version. */
export async function readTimes(
  client: pg.PoolClient,
  memory: SearchMemory,
  counted: CountedVersion,
): Promise<DayTimes> {
  const known = memory.timesOf(counted);
  if (known !== undefined) return known;
  const [row] = await ask<[Buffer | null]>(client, TIMES, [counted.zoneId, counted.day]);
  const times = unpackTimes(row?.[0] ?? Buffer.alloc(0));
  memory.rememberTimes(counted, times);
  return times;
}

function clip({ from, to }: Span, window: Span): Span {
  return { from: Math.max(from, window.from), to: Math.min(to, window.to) };
}

function dayOf(ms: number): string {
  return momentOf(ms).slice(0, 10);
}

/** Of an array of Postgres without quotes. */
function toTexts(list: string | null | undefined): string[] {
  return list === null || list === undefined || list === "{}" ? [] : list.slice(1, -1).split(",");
}

function toNumbers(list: string | null | undefined): number[] {
  return toTexts(list).map(Number);
}
