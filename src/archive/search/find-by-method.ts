/** Searches for rows and groups, also by a field that only records contain. */
import { writeFile } from "node:fs/promises";
import { MAX_METHOD_EVENTS } from "#archive/rules/query/estimate-cost.ts";
import { asksMethod, type SearchPlan } from "#archive/rules/query/plan-search.ts";
import { passesTest } from "#archive/rules/query/text-test.ts";
import { createOpenedBlocks, readMethod } from "#archive/rules/records/find-records.ts";
import type { OpenRows } from "#archive/rules/sql/event-source.ts";
import { type FoundGroups, groupColumns, groupEvents, readGroups } from "#archive/rules/sql/group-events.ts";
import { cutOut, readArchivedDays } from "#db/archive/archived-days.ts";
import { copyOpenRows } from "#db/archive/open-rows.ts";
import { inSearchTransaction } from "#db/archive/search-condition.ts";
import { runCancellable } from "#db/postgres/transaction.ts";
import { UsageError } from "#lib/errors.ts";
import { formatWhole } from "#lib/format.ts";
import { columnOf } from "#model/fields.ts";
import { DIMENSIONS, type SearchSource } from "#model/kinds.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { type FoundEvent, type FoundPage, findRows } from "./find-rows.ts";
import { readRecords } from "./read-records.ts";
import type { SearchDeps } from "./searching.ts";

const RECORDS_AT_ONCE = 500;
interface MethodEvent {
  readonly event: FoundEvent;
  readonly method: string;
}

interface Found {
  readonly events: readonly MethodEvent[];
  readonly source: SearchSource;
}

/**
 * Returns all events that a search about the method finds, newest first. The method is in records only, so the records of
 * all events that pass the other filters are read, of so many events at most.
 * @throws {UsageError} for more events
 */
export async function findByMethod(
  deps: SearchDeps,
  zoneId: number,
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<Found> {
  const wanted = { ...plan, groupBy: [], methodClauses: [], page: 0, pageSize: MAX_METHOD_EVENTS };
  const { rows, total, source } = await findRows(deps, zoneId, wanted, signal);
  if (total > MAX_METHOD_EVENTS) {
    const rule = `The method is only in the records of events, and one search reads ${formatWhole(MAX_METHOD_EVENTS)} records at most`;
    throw new UsageError([
      `${rule}; the other filters and the time range find ${formatWhole(total)} events. Choose a shorter time range or add a filter.`,
    ]);
  }
  const recordDeps = { ...deps, openedBlocks: createOpenedBlocks() };
  const events: MethodEvent[] = [];
  for (let first = 0; first < rows.length; first += RECORDS_AT_ONCE) {
    const part = rows.slice(first, first + RECORDS_AT_ONCE);
    const records = await readRecords(recordDeps, zoneId, part, signal);
    for (const [index, event] of part.entries()) {
      const method = readMethod(records[index]);
      const isFound = plan.methodClauses.every(
        ({ tests, isNegated = false }) => tests.some((test) => passesTest(test, method)) !== isNegated,
      );
      if (isFound) events.push({ event, method });
    }
  }
  return { events, source };
}

/** Writes columns of found events as `copyOpenRows` writes those of Postgres, so that the same statements read both. */
export async function writeFound(
  zoneId: number,
  events: readonly MethodEvent[],
  { path, columns }: OpenRows,
): Promise<OpenRows> {
  const fields = Object.fromEntries(DIMENSIONS.map((one) => [columnOf(one), one]));
  const textOf = ({ event, method }: MethodEvent, column: string): string => {
    if (column === "zone_id") return String(zoneId);
    if (column === "log_id") return event.logId;
    if (column === "route" || column === "message") return event[column];
    if (column === "method") return method;
    if (column === "host" || column === "path") return toUrlPart(column, event.fields.url);
    return event.fields[fields[column] as keyof FoundEvent["fields"]];
  };
  const lines = events.map((found) => {
    const cells = columns.map((column) =>
      column === "occurred_at"
        ? String(found.event.occurredAt)
        : `"${textOf(found, column).replaceAll('"', '""')}"`,
    );
    return `${cells.join(",")}\n`;
  });
  await writeFile(path, lines.join(""));
  return { path, columns };
}

interface AnsweredGroups extends FoundGroups {
  /** Whether files of the archive had a part in the answer. */
  readonly source: SearchSource;
}

/**
 * Returns one page of groups. Events that are not in files are copied out of Postgres as far as they pass the search, and
 * one statement of DuckDB reads both. The manifest and the copied events are of one view of the data.
 * @throws {UsageError} if a search about the method would have to read too many records
 */
export async function searchGroups(
  deps: SearchDeps,
  zoneId: number,
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<AnsweredGroups> {
  const { queries, files: reader } = deps;
  const columns = groupColumns(plan);
  const { path, remove } = reader.scratchFile();
  try {
    if (asksMethod(plan)) {
      const { events, source } = await findByMethod(deps, zoneId, plan, signal);
      if (events.length === 0) return { groups: [], total: 0, source };
      const statements = groupEvents(
        { files: [], openRows: await writeFound(zoneId, events, { path, columns }) },
        plan,
      );
      return { ...readGroups(await reader.read([], statements, signal), plan), source };
    }
    const { days, copied } = await runCancellable(queries, signal, (database) =>
      inSearchTransaction(database, async (tx, client) => {
        const days = await readArchivedDays(tx, zoneId, plan);
        const spans = cutOut(plan, days);
        return { days, copied: await copyOpenRows(client, zoneId, plan, { spans, columns, path }) };
      }),
    );
    const source = days.length > 0 ? "archive" : "events";
    if (days.length === 0 && copied === 0) return { groups: [], total: 0, source };
    const files = days.map(({ events }) => events);
    const openRows = copied === 0 ? null : { path, columns };
    const statements = groupEvents({ files: files.map(reader.eventsFileOf), openRows }, plan);
    return { ...readGroups(await reader.read(files, statements, signal), plan), source };
  } finally {
    await remove();
  }
}

/**
 * Returns one page of events, newest first; those of the same millisecond by log id, byte by byte, the greatest first.
 * @throws {UsageError} if a search about the method would have to read too many records
 */
export async function searchRows(
  deps: SearchDeps,
  zoneId: number,
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<FoundPage> {
  if (!asksMethod(plan)) return findRows(deps, zoneId, plan, signal);
  const { events, source } = await findByMethod(deps, zoneId, plan, signal);
  const first = plan.page * plan.pageSize;
  const rows = events.slice(first, first + plan.pageSize).map(({ event }) => event);
  return { rows, total: events.length, source };
}
