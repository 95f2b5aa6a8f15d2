/** Finds the events of a search in one zone or in several. */
import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
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
import { DAY_MS } from "#lib/units.ts";
import type { SearchColumn } from "#model/fields.ts";
import { searchRecords } from "./find-rows.ts";
import { type FoundEvent, type RecordDeps, readZoneRecords } from "./read-records.ts";
import { readUnion } from "./read-union.ts";
import { withoutKept } from "./searching.ts";

/** An event with its zone and its record, if the caller may see it. */
export interface FoundRecord {
  readonly zoneId: number;
  readonly event: FoundEvent;
  readonly record: Buffer | undefined;
}

/**
 * Returns one page of the events of zones, newest first; those of one millisecond by log id and then by zone, and how many there are.
 * For several zones, one statement finds the times between which the page lies, and another one reads the events between them.
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
  const { rows, source } = await readUnion(
    deps,
    zoneIds,
    plan,
    { columns: PLACE_COLUMNS, signal },
    (events) => [...prepareSource(events), placePage(events, plan)],
  );
  const { total, place } = readPlace(rows);
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
