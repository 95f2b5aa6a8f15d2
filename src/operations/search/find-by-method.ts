import { writeFile } from "node:fs/promises";
import { UsageError } from "#lib/errors.ts";
import { formatWhole } from "#lib/format.ts";
import { columnOf } from "#model/fields.ts";
import { DIMENSIONS, type SearchSource } from "#model/kinds.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { MAX_METHOD_EVENTS } from "#stages/archive/query/estimate-cost.ts";
import type { SearchPlan } from "#stages/archive/query/plan-search.ts";
import { passesTest } from "#stages/archive/query/text-test.ts";
import { createOpenedBlocks } from "#stages/archive/records/opened-blocks.ts";
import { readMethod } from "#stages/archive/records/read-record.ts";
import type { OpenRows } from "#stages/archive/sql/event-source.ts";
import { type FoundEvent, findRows } from "./find-rows.ts";
import { readRecords } from "./read-records.ts";
import type { SearchDeps } from "./search-deps.ts";

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
