/** Finds the events of a search in one zone or in several. */
import { asksMethod, type SearchPlan } from "#archive/rules/query/plan-search.ts";
import type { ZonesRequest } from "#archive/rules/query/read-search.ts";
import { prepareSource } from "#archive/rules/sql/event-source.ts";
import {
  fetchPage,
  PAGE_COLUMNS,
  type PagePlace,
  PLACE_COLUMNS,
  placePage,
  readPage,
  readPlace,
} from "#archive/rules/sql/zones-page.ts";
import type { ArchivedDay } from "#db/archive/archived-days.ts";
import { countDays, cutPage } from "#db/archive/open-rows.ts";
import { inSearchView } from "#db/archive/search-condition.ts";
import { DAY_MS } from "#lib/units.ts";
import type { SearchColumn } from "#model/fields.ts";
import { type Span, startOfDay } from "#model/horizon.ts";
import type { SearchSource } from "#model/kinds.ts";
import { searchRecords } from "./find-rows.ts";
import { type FoundEvent, type RecordDeps, readZoneRecords } from "./read-records.ts";
import { readUnion } from "./read-union.ts";
import { type SearchDeps, withoutKept } from "./searching.ts";

/** An event with its zone and its record, if the caller may see it. */
export interface FoundRecord {
  readonly zoneId: number;
  readonly event: FoundEvent;
  readonly record: Buffer | undefined;
}

/**
 * Returns one page of the events of zones, newest first; those of one millisecond by log id and then by zone, and how many there are.
 * For several zones, the times between which the page lies are found first, and then the events between them are read.
 * @throws {UsageError} if a search about the method would have to read too many records, or is about several zones
 */
export async function searchZones(
  deps: RecordDeps,
  { zoneIds, plan, isMasked }: ZonesRequest,
  signal: AbortSignal,
) {
  const [zoneId, ...others] = zoneIds;
  if (zoneId !== undefined && others.length === 0) {
    const { rows, ...found } = await searchRecords(deps, { zoneId, plan, isMasked }, signal);
    return { ...found, rows: rows.map((row): FoundRecord => ({ zoneId, ...row })) };
  }
  const { total, place, source } = await findPage(deps, zoneIds, plan, signal);
  const events = place === null ? [] : await readEvents(deps, plan, place, signal);
  const records = isMasked ? [] : await readZoneRecords(deps, events, signal);
  const found = events.map(
    ({ zoneId, ...event }, index): FoundRecord => ({ zoneId, event, record: records[index] }),
  );
  return { rows: found, total, source };
}

/** Returns the condition that one of the columns, such as those of ids, has one of these values. */
export function isOneOf(
  columns: readonly SearchColumn[],
  texts: readonly string[],
): SearchPlan["clauses"][number] {
  return { columns, tests: [{ kind: "equals", texts }] };
}

interface Found {
  /** Number of events on all pages. */
  readonly total: number;
  readonly place: PagePlace | null;
  readonly source: SearchSource;
}

/**
 * Without a filter, whole days are counted and not read, except those of the page. With a filter, the times of all events that pass it
 * are read.
 */
async function findPage(
  deps: SearchDeps,
  zoneIds: readonly number[],
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<Found> {
  const offset = plan.page * plan.pageSize;
  const find = async (span: Span, skip: number) => ({
    ...span,
    ...(await findPlace(deps, zoneIds, { ...plan, ...span }, skip, signal)),
  });
  const whole = { from: Math.ceil(plan.from / DAY_MS) * DAY_MS, to: startOfDay(plan.to) };
  if (plan.clauses.length > 0 || asksMethod(plan) || whole.from >= whole.to) return find(plan, offset);
  const days = await inSearchView(deps.queries, signal, (tx) => countDays(tx, zoneIds, whole));
  const newest = await find({ from: whole.to, to: plan.to }, offset);
  const oldest = await find({ from: plan.from, to: whole.from }, 0);
  const parts = [...days, newest, oldest];
  const total = parts.reduce((sum, part) => sum + part.total, 0);
  const source = parts.some((part) => part.source === "archive") ? "archive" : "events";
  const onPage = cutPage(parts, plan).map(({ segment }) => segment);
  const [last, first] = [onPage[0], onPage.at(-1)];
  if (last === undefined || first === undefined) return { total, place: null, source };
  if (first === newest) return { total, place: newest.place, source };
  const newer = parts.reduce((sum, part) => (part.from >= last.to ? sum + part.total : sum), 0);
  const { place } = await find({ from: first.from, to: last.to }, offset - newer);
  return { total, place, source };
}

/** Reads the times of all events of a span, to find the page behind the newest `skip`. */
async function findPlace(
  deps: SearchDeps,
  zoneIds: readonly number[],
  plan: SearchPlan,
  skip: number,
  signal: AbortSignal,
): Promise<Found> {
  if (plan.from >= plan.to) return { total: 0, place: null, source: "events" };
  const options = { columns: PLACE_COLUMNS, signal };
  const { rows, source } = await readUnion(deps, zoneIds, plan, options, (events) => [
    ...prepareSource(events),
    placePage(events, plan, skip),
  ]);
  return { ...readPlace(rows), source };
}

type ZoneEvent = FoundEvent & { readonly zoneId: number };

/**
 * The events are read from where their records are: kept hours know no records. Other days between those of the page have none of
 * its events.
 */
async function readEvents(
  deps: RecordDeps,
  plan: SearchPlan,
  { days: wanted, skip, ...span }: PagePlace,
  signal: AbortSignal,
): Promise<ZoneEvent[]> {
  const part = { ...plan, ...span };
  const names = new Set(wanted.map(([zoneId, day]) => `${zoneId} ${day * DAY_MS}`));
  const isRead = ({ zoneId, from }: ArchivedDay) => names.has(`${zoneId} ${from}`);
  const { rows, days } = await readUnion(
    withoutKept(deps),
    [...new Set(wanted.map(([zoneId]) => zoneId))],
    part,
    { columns: PAGE_COLUMNS, isRead, signal },
    (events) => [...prepareSource(events), fetchPage(events, part, skip)],
  );
  return readPage(rows).map(({ file, row, ...event }) => {
    const day = days[file];
    return { ...event, archived: day === undefined ? null : { records: day.records, row } };
  });
}
