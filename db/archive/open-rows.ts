/** Reads, counts and copies the events that are in Postgres. */
import { count, getTableName, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type pg from "pg";
import { DAY_MS, HOUR_MS, LAST_MS } from "#lib/units.ts";
import { toColumnSql } from "#model/fields.ts";
import type { Span } from "#model/horizon.ts";
import type { SearchSource } from "#model/kinds.ts";
import type { EventQuery } from "#model/search-condition.ts";
import { type ArchivedEvent, EVENT_TEXTS, type EventKey, toArchivedEvent } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { copyQuery, copyToFile } from "../postgres/copy.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { wafEvents } from "../schema/events.ts";
import { cutOut, isDayOf, openDays } from "./archived-days.ts";
import { isAsked, isAskedOf, toMoment, type ZoneSpans } from "./search-condition.ts";

const e = alias(wafEvents, "e");

/** Events that may be read in order before it pays to find all that match first. */
const ORDERED_READS = 50_000;

/** A page of a search, counted from 0. */
type PagedQuery = EventQuery & { readonly page: number; readonly pageSize: number };

/** The events of a segment that are on a page: `taken` after the newest `skip`. */
export interface PagePart<Of extends OpenCount> {
  readonly segment: Of;
  readonly skip: number;
  readonly taken: number;
}

/** Returns what of each segment is on the page, the newest first. */
export function cutPage<Of extends OpenCount>(
  segments: readonly Of[],
  { page, pageSize }: PagedQuery,
): PagePart<Of>[] {
  let before = 0;
  return segments
    .toSorted((one, other) => other.from - one.from)
    .flatMap((segment) => {
      const skip = Math.max(0, page * pageSize - before);
      const taken = Math.min(segment.total - skip, (page + 1) * pageSize - before - skip);
      before += segment.total;
      return taken > 0 ? [{ segment, skip, taken }] : [];
    });
}

/**
 * Counts the matching events outside the archive days, which are ascending, and returns those of the page that are newer than
 * every archive day. The place of an older event on the page depends on the counts of the files.
 */
export async function readOpenPage(tx: Queryable, zoneId: number, query: PagedQuery, days: readonly Span[]) {
  const open = await countOpen(tx, zoneId, query, cutOut(query, days));
  const newer = open.filter(({ from }) => from >= (days.at(-1)?.to ?? 0));
  return { open, newest: await readOpenRows(tx, zoneId, query, cutPage(newer, query)) };
}

/**
 * Returns the events of some parts, newest first; those of one millisecond by log id, byte by byte, the greatest first. Rare
 * matches are found first, by whatever index knows them, and sorted. Common ones are met soon enough while reading in
 * order. Postgres would have to guess which, and guesses badly about texts.
 */
export async function readOpenRows(
  tx: Queryable,
  zoneId: number,
  query: EventQuery,
  parts: readonly PagePart<OpenCount>[],
): Promise<ArchivedEvent[]> {
  if (parts.length === 0) return [];
  const spans = parts.map(({ segment: { from, to } }) => ({
    from: Math.max(from, query.from),
    to: Math.min(to, query.to),
  }));
  const skip = parts[0]?.skip ?? 0;
  const limit = parts.reduce((sum, { taken }) => sum + taken, 0);
  const matching = sumOf(parts.map(({ segment }) => segment));
  const present = query.clauses.length === 0 ? matching : sumOf(await countEvents(tx, zoneId, spans));
  const condition = isAsked(zoneId, query, spans);
  const isCommon = ((skip + limit) / matching) * present <= ORDERED_READS;
  const from = isCommon
    ? sql`${wafEvents} ${e} where ${condition}`
    : sql`(select * from ${wafEvents} ${e} where ${condition} offset 0) ${e}`;
  const found = await tx.execute<FoundColumns>(sql`
    select ${sql.raw(FOUND_COLUMNS)} from ${from}
    order by ${e.occurredAt} desc, ${e.logId} desc limit ${limit} offset ${skip}`);
  return found.rows.map(toFoundEvent);
}

export interface OnwardQuery extends EventQuery {
  /** The last event of the previous page, which lies in the span; null for the first page. */
  readonly after: EventKey | null;
  readonly limit: number;
}

/**
 * Returns the next matching events of a zone after a position, oldest first. Events of one millisecond are ordered by log
 * id, byte by byte. A position is an event, not a count, so events that arrive before the position do not shift the page.
 */
export async function searchOnward(
  db: Queryable,
  zoneId: number,
  { from, to, clauses, after, limit }: OnwardQuery,
): Promise<ArchivedEvent[]> {
  const condition = isAsked(zoneId, { from: after?.occurredAt ?? from, to, clauses });
  const isAfter =
    after === null
      ? sql``
      : sql` and (${e.occurredAt}, ${e.logId}) > (${toMoment(after.occurredAt)}, ${after.logId}::text)`;
  const { rows } = await db.execute<FoundColumns>(sql`
    select ${sql.raw(FOUND_COLUMNS)} from ${wafEvents} ${e} where ${condition}${isAfter}
    order by ${e.occurredAt}, ${e.logId} limit ${limit}`);
  return rows.map(toFoundEvent);
}

/** A row as `FOUND_COLUMNS` selects it: epoch ms, and the columns of an event. */
interface FoundColumns extends Record<string, unknown> {
  readonly at: number;
}

const TEXTS = EVENT_TEXTS.map((name) =>
  name === "log_id" || name === "route" ? `e.${name}` : `coalesce(e.${name}, '') as ${name}`,
);
const FOUND_COLUMNS = `(date_part('epoch', e.occurred_at) * 1000)::bigint::float8 as at, ${TEXTS.join(", ")}`;

function toFoundEvent(row: FoundColumns): ArchivedEvent {
  return toArchivedEvent(
    row.at,
    EVENT_TEXTS.map((name) => row[name] as string),
  );
}

const w = alias(coverageWindows, "w");
const f = alias(archiveFiles, "f");

/** A part of a window and how many of its events match. */
export interface OpenCount extends Span {
  readonly total: number;
}

const sumOf = (parts: readonly OpenCount[]) => parts.reduce((sum, { total }) => sum + total, 0);

/** Returns how many events of some spans match, in parts of a day at most. */
export function countOpen(
  tx: Queryable,
  zoneId: number,
  query: EventQuery,
  spans: readonly Span[] = [query],
): Promise<OpenCount[]> {
  return query.clauses.length === 0 ? countEvents(tx, zoneId, spans) : countMatches(tx, zoneId, query, spans);
}

/** Counts by day and span. A day is a partition: telling days apart by it costs nothing per match. */
async function countMatches(
  tx: Queryable,
  zoneId: number,
  query: EventQuery,
  spans: readonly Span[],
): Promise<OpenCount[]> {
  if (spans.length === 0) return [];
  const ends = sql.param(spans.slice(0, -1).map(({ to }) => new Date(to)));
  const place = spans.length === 1 ? sql`` : sql`, width_bucket(${e.occurredAt}, ${ends}::timestamptz[])`;
  const found = await tx
    .select({ first: epochMs(sql`min(${e.occurredAt})`), total: count() })
    .from(e)
    .where(isAsked(zoneId, query, spans))
    .groupBy(sql`${e}.tableoid${place}`);
  return found.map(({ first, total }) => {
    const day = first - (first % DAY_MS);
    const span = spans.find(({ from, to }) => from <= first && first < to) ?? query;
    return { from: Math.max(day, span.from), to: Math.min(day + DAY_MS, span.to), total };
  });
}

/**
 * Counts in parts of an hour at most. Whole hours are as ingest counts them while it stores; cut hours are counted. Hours of
 * days past retention are not among them.
 */
async function countEvents(tx: Queryable, zoneId: number, spans: readonly Span[]): Promise<OpenCount[]> {
  if (spans.length === 0) return [];
  const whole = spans.flatMap(({ from, to }) => {
    const [first, end] = [Math.ceil(from / HOUR_MS) * HOUR_MS, Math.floor(to / HOUR_MS) * HOUR_MS];
    return end > first ? [{ from: first, to: end }] : [];
  });
  const cut = spans.flatMap(({ from, to }) => {
    const [first, end] = [Math.ceil(from / HOUR_MS) * HOUR_MS, Math.floor(to / HOUR_MS) * HOUR_MS];
    if (first > end) return [{ from, to }];
    return [
      { from, to: first },
      { from: end, to },
    ].filter((part) => part.to > part.from);
  });
  const counts: OpenCount[] = [];
  if (whole.length > 0) {
    const isInside = whole.map(
      ({ from, to }) =>
        sql`(${w.startsAt} >= ${new Date(from)} and ${w.startsAt} < ${new Date(Math.min(to, LAST_MS))})`,
    );
    const found = await tx.execute<{ from: number; total: number }>(sql`
      select ${epochMs(w.startsAt)} as from, ${w.storedCount}::float8 as total
      from ${coverageWindows} ${w}
      where ${w.zoneId} = ${zoneId}::integer and ${w.storedCount} > 0 and (${sql.join(isInside, sql` or `)})
        and to_char(${w.startsAt} at time zone 'UTC', 'YYYYMMDD') in (
          select right(c.relname, 8) from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = ${getTableName(wafEvents)}::regclass)`);
    counts.push(...found.rows.map(({ from, total }) => ({ from, to: from + HOUR_MS, total })));
  }
  for (const part of cut) {
    const [counted] = await tx
      .select({ total: count() })
      .from(e)
      .where(isAsked(zoneId, { ...part, clauses: [] }));
    const total = counted?.total ?? 0;
    if (total > 0) counts.push({ ...part, total });
  }
  return counts;
}

/** The events of zones of a UTC day, of their files and of Postgres. */
export interface DayCount extends OpenCount {
  /** `archive` if a zone has a file of the day. */
  readonly source: SearchSource;
}

/** Counts the events of zones by day, without reading them. The span, epoch ms, consists of whole days. */
export async function countDays(
  tx: Queryable,
  zoneIds: readonly number[],
  { from, to }: Span,
): Promise<DayCount[]> {
  const window = { from, to: to - 1 };
  const { rows } = await tx.execute<{ from: number; total: number; source: SearchSource }>(sql`
    with ${openDays(zoneIds, window)}
    select extract(epoch from day)::float8 * 1000 as from, sum(events)::float8 as total, min(source) as source
    from (
      select ${f.day}, ${f.rows} as events, 'archive' as source from ${archiveFiles} ${f}
      where ${f.zoneId} = any(${sql.param([...zoneIds])}::integer[]) and ${f.kind} = 'events' and ${f.retiredAt} is null
        and ${isDayOf(f.day, window)}
      union all
      select day, w.events, 'events' from days cross join lateral (
        select coalesce(sum(${w.storedCount}), 0) as events from ${coverageWindows} ${w}
        where ${w.zoneId} = zone and ${w.startsAt} >= from_at and ${w.startsAt} < from_at + interval '1 day') w) counted
    group by day`);
  return rows.map((row) => ({ ...row, to: row.from + DAY_MS }));
}

export interface OpenPart {
  readonly columns: readonly string[];
  readonly path: string;
  /** Only the newest `limit` events that come after `after` in the order from new to old. Default: all, in no order. */
  readonly part?: { readonly after: EventKey | null; readonly limit: number };
  /** Only events of addresses that have an event of one of these rules, or one whose URL the regular expression finds. */
  readonly addressesOf?: { readonly ruleIds: readonly string[]; readonly pattern: string | null };
}

const NUMBERS = ["zone_id", "matched_key", "facts"];

/**
 * Writes columns of the events that a query finds in some spans of zones into a CSV file, and returns how many events that were.
 * The time is written in epoch ms; no text is null. The connection must be in a transaction.
 */
export async function copyOpenRows(
  client: pg.PoolClient,
  query: EventQuery,
  zones: readonly ZoneSpans[],
  { columns, path, part, addressesOf }: OpenPart,
): Promise<number> {
  const read = zones.filter(({ spans }) => spans.length > 0);
  if (read.length === 0) return 0;
  const selected = columns.map((column) => {
    if (column === "occurred_at") return "(date_part('epoch', e.occurred_at) * 1000)::bigint";
    return NUMBERS.includes(column) ? `e.${column}` : `coalesce(${toColumnSql(column, "e.")}, '')`;
  });
  // The window ends with the position's millisecond, because partitions and index ranges are chosen by the window. The
  // rest of the condition only orders events within that millisecond. Written as a row comparison, the planner would
  // take it for rare and sort the rest of the day.
  const after = part?.after ?? null;
  const isBehind =
    after === null
      ? sql``
      : sql` and (${e.occurredAt} < ${toMoment(after.occurredAt)} or ${e.logId} < ${after.logId})`;
  const order =
    part === undefined ? sql`` : sql` order by ${e.occurredAt} desc, ${e.logId} desc limit ${part.limit}`;
  const condition = isAskedOf(query, read);
  const isOf =
    addressesOf === undefined
      ? sql``
      : sql` and coalesce(${e.ip}, '') in (select coalesce(${e.ip}, '') from ${wafEvents} ${e} where ${condition} and
          (${e.ruleId} = any (${sql.param([...addressesOf.ruleIds])}::text[]) or ${e.url} ~ ${addressesOf.pattern}))`;
  const select = sql`select ${sql.raw(selected.join(", "))} from ${wafEvents} ${e}
    where ${condition}${isOf}${isBehind}${order}`;
  // Without a filter, the next part can be read from the primary key in order. Sorting the rest of the day would cost
  // twice as much.
  if (part !== undefined && query.clauses.length === 0)
    await client.query("set local enable_sort = off; set local max_parallel_workers_per_gather = 0");
  const copied = await copyQuery(client, select, "format csv");
  return copyToFile(client, copied, path);
}
