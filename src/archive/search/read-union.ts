/** Reads all events of a search with one statement: the rows of files, and a copy of those that are in Postgres. */
import { writeFile } from "node:fs/promises";
import { asksMethod, type SearchPlan } from "#archive/rules/query/plan-search.ts";
import type { EventSource, OpenRows } from "#archive/rules/sql/event-source.ts";
import { PARQUET_COLUMNS, exportParquet as toParquet } from "#archive/rules/sql/export-events.ts";
import { type FoundGroups, groupColumns, groupEvents, readGroups } from "#archive/rules/sql/group-events.ts";
import type { Piece } from "#archive/rules/sql/to-condition.ts";
import type { ScratchFile } from "#db/archive/archive-reader.ts";
import { type ArchivedDay, cutOut, sourceOf } from "#db/archive/archived-days.ts";
import { inKeptView } from "#db/archive/kept-hours.ts";
import { copyOpenRows, type OpenPart } from "#db/archive/open-rows.ts";
import type { ZoneSpans } from "#db/archive/search-condition.ts";
import { UsageError } from "#lib/errors.ts";
import { columnOf } from "#model/fields.ts";
import type { Span } from "#model/horizon.ts";
import { DIMENSIONS, type SearchSource } from "#model/kinds.ts";
import { toUrlPart, URL_PARTS } from "#model/record-parts.ts";
import type { EventQuery } from "#model/search-condition.ts";
import { findByMethod, type MethodEvent } from "./find-rows.ts";
import { orWithoutKept, type SearchDeps, withoutKept } from "./searching.ts";

interface UnionOptions extends Pick<OpenPart, "columns" | "addressesOf"> {
  readonly signal: AbortSignal;
  /** Whether the file of a day is read. Default: every file is. */
  readonly isRead?: (day: ArchivedDay) => boolean;
  /** Whether the statements run even if there is no event. Default: false. */
  readonly isMadeEmpty?: boolean;
}

interface ReadUnion {
  /** The rows of the last statement. */
  readonly rows: readonly string[];
  /** The days and kept hours, in the order of the statement's files. */
  readonly days: readonly ArchivedDay[];
  /** Whether files of the archive had a part in the answer. */
  readonly source: SearchSource;
}

/**
 * Copies the events of zones out of Postgres that pass the search and are in no file, and runs the statements over the copy and the
 * files. The manifest and the copied events are of one view of the data, and no transaction is open while DuckDB works.
 * @throws {UsageError} if a search about the method would have to read too many records, or is about several zones
 */
export async function readUnion(
  deps: SearchDeps,
  zoneIds: readonly number[],
  query: EventQuery | SearchPlan,
  options: UnionOptions,
  toStatements: (source: EventSource, days: readonly ArchivedDay[]) => readonly Piece[],
): Promise<ReadUnion> {
  // The records of a sample's events are found by the day of their file.
  const read = (from: SearchDeps) => readOnce(from, zoneIds, query, options, toStatements);
  return options.addressesOf === undefined ? orWithoutKept(deps, read) : read(withoutKept(deps));
}

async function readOnce(
  deps: SearchDeps,
  zoneIds: readonly number[],
  query: EventQuery | SearchPlan,
  { columns, addressesOf, isRead = () => true, isMadeEmpty = false, signal }: UnionOptions,
  toStatements: (source: EventSource, days: readonly ArchivedDay[]) => readonly Piece[],
): Promise<ReadUnion> {
  const { files } = deps;
  const { path, remove } = files.scratchFile();
  try {
    const { days, copied, source } =
      "methodClauses" in query && asksMethod(query)
        ? await copyByMethod(deps, onlyOf(zoneIds), query, { path, columns, signal })
        : await inKeptView(deps, { zoneIds, window: query }, signal, async (_tx, client, days) => {
            const part = { columns, path, ...(addressesOf && { addressesOf }) };
            const copied = await copyOpenRows(client, query, cutZones(zoneIds, query, days), part);
            return { days: days.filter(isRead), copied, source: sourceOf(days) };
          });
    const isEmpty = days.length === 0 && copied === 0;
    if (isEmpty && !isMadeEmpty) return { rows: [], days, source };
    if (isEmpty) await writeFile(path, "");
    const read = days.map(({ events }) => events);
    const openRows = copied > 0 || isEmpty ? { path, columns } : null;
    const statements = toStatements({ files: files.eventsFilesOf(days, query), openRows }, days);
    return { rows: await files.read(read, statements, signal), days, source };
  } finally {
    await remove();
  }
}

/** Returns what of the window no file of the zone answers for. Zones of which that is the same are read together. */
function cutZones(zoneIds: readonly number[], window: Span, days: readonly ArchivedDay[]): ZoneSpans[] {
  const byZone = new Map(zoneIds.map((zoneId): [number, Span[]] => [zoneId, []]));
  for (const day of days) for (const zoneId of day.zoneIds ?? [day.zoneId]) byZone.get(zoneId)?.push(day);
  const cut = Array.from(byZone, ([zoneId, own]) => ({ zoneId, spans: cutOut(window, own) }));
  const alike = Map.groupBy(cut, ({ spans }) => JSON.stringify(spans));
  return Array.from(alike.values(), (same) => ({
    zoneIds: same.map(({ zoneId }) => zoneId),
    spans: same[0]?.spans ?? [],
  }));
}

/** @throws {UsageError} for several zones */
function onlyOf([zoneId, ...others]: readonly number[]): number {
  if (zoneId !== undefined && others.length === 0) return zoneId;
  throw new UsageError([
    "The method is only in the records of events: a filter or group by it is possible for one zone at a time.",
  ]);
}

/**
 * Writes the events of a search about the method as `copyOpenRows` writes those of Postgres, so that the same statements read
 * both. The method is in records only, so these events are found one by one, wherever they are.
 */
export async function copyByMethod(
  deps: SearchDeps,
  zoneId: number,
  plan: SearchPlan,
  { path, columns, signal }: OpenRows & { readonly signal: AbortSignal },
) {
  const { events, source } = await findByMethod(deps, zoneId, plan, signal);
  const valuesOf = ({ event, method }: MethodEvent): Readonly<Record<string, string>> => ({
    ...Object.fromEntries(DIMENSIONS.map((name) => [columnOf(name), event.fields[name]])),
    zone_id: String(zoneId),
    log_id: event.logId,
    route: event.route,
    message: event.message,
    method,
    request_id: event.requestId,
    ...Object.fromEntries(URL_PARTS.map((part) => [part, toUrlPart(part, event.fields.url)])),
  });
  const lines = events.map((found) => {
    const values = valuesOf(found);
    // The numbers of a request's facts are not read, so they are unknown.
    const cells = columns.map((column) => {
      if (column === "occurred_at") return String(found.event.occurredAt);
      return values[column] === undefined ? "" : `"${values[column].replaceAll('"', '""')}"`;
    });
    return `${cells.join(",")}\n`;
  });
  await writeFile(path, lines.join(""));
  return { days: [], copied: events.length, source };
}

/** Returns one page of groups. */
export async function searchGroups(
  deps: SearchDeps,
  zoneIds: readonly number[],
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<FoundGroups & Pick<ReadUnion, "source">> {
  const options = { columns: groupColumns(plan), signal };
  const { rows, source } = await readUnion(deps, zoneIds, plan, options, (events) =>
    groupEvents(events, plan),
  );
  return { ...readGroups(rows, plan), source };
}

/**
 * Writes all events that a search finds into one Parquet file, and returns the file, which the caller removes, and their number.
 * The time limit of searches applies, because the file can only be sent when it is complete.
 */
export async function exportParquet(
  deps: SearchDeps,
  zoneIds: readonly number[],
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<ScratchFile & { readonly events: number }> {
  const exported = deps.files.scratchFile();
  try {
    const options = { columns: PARQUET_COLUMNS, isMadeEmpty: true, signal };
    const { rows } = await readUnion(deps, zoneIds, plan, options, (events) =>
      toParquet(events, plan, exported.path),
    );
    return { ...exported, events: Number(rows[0]) };
  } catch (thrown) {
    await exported.remove();
    throw thrown;
  }
}
