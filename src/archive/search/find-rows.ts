/** Finds the events of a search, also by a field that only records contain. */
import { MAX_METHOD_EVENTS } from "#archive/rules/query/estimate-cost.ts";
import { asksMethod, type SearchPlan } from "#archive/rules/query/plan-search.ts";
import type { SearchRequest } from "#archive/rules/query/read-search.ts";
import { passesTest } from "#archive/rules/query/text-test.ts";
import { createOpenedBlocks, readMethod } from "#archive/rules/records/find-records.ts";
import {
  countInSpan,
  fetchRows,
  fetchSome,
  findMatches,
  type PlacedEvent,
  readMatches,
  readRows,
} from "#archive/rules/sql/find-rows.ts";
import { type ArchivedDay, cutOut, readArchivedDays, sourceOf } from "#db/archive/archived-days.ts";
import { inKeptView } from "#db/archive/kept-hours.ts";
import {
  countOpen,
  cutPage,
  type OpenCount,
  type PagePart,
  readOpenPage,
  readOpenRows,
} from "#db/archive/open-rows.ts";
import { inSearchView } from "#db/archive/search-condition.ts";
import { UsageError } from "#lib/errors.ts";
import { formatWhole } from "#lib/format.ts";
import type { Span } from "#model/horizon.ts";
import type { SearchSource } from "#model/kinds.ts";
import { type FoundEvent, type RecordDeps, readRecords } from "./read-records.ts";
import { orWithoutKept, type SearchDeps, withoutKept } from "./searching.ts";

interface FoundPage {
  readonly rows: readonly FoundEvent[];
  /** Number of events on all pages. */
  readonly total: number;
  /** Whether files of the archive had a part in the answer. */
  readonly source: SearchSource;
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
  if (!asksMethod(plan)) return orWithoutKept(deps, (from) => findRows(from, zoneId, plan, signal));
  const { events, source } = await findByMethod(deps, zoneId, plan, signal);
  const first = plan.page * plan.pageSize;
  const rows = events.slice(first, first + plan.pageSize).map(({ event }) => event);
  return { rows, total: events.length, source };
}

/** Returns the same page, each event with its record. A caller that sees masked addresses gets no record. */
export async function searchRecords(
  deps: RecordDeps,
  { zoneId, plan, isMasked }: SearchRequest,
  signal: AbortSignal,
) {
  const { rows, ...found } = await searchRows(deps, zoneId, plan, signal);
  const records = isMasked ? [] : await readRecords(deps, zoneId, rows, signal);
  return { ...found, rows: rows.map((event, index) => ({ event, record: records[index] })) };
}

/** Events of a part of the window, of which there is no other. */
interface Segment extends OpenCount {
  /** Null if the events are in Postgres. Else rows of the page, the first row of the window, or all events that match, oldest first. */
  readonly file: {
    readonly day: ArchivedDay;
    readonly rows: readonly number[] | { first: number } | { events: readonly PlacedEvent[] };
  } | null;
}

/**
 * Returns one page of events. Days are counted first, so that only the events of the page are read.
 *
 * No transaction is open while DuckDB works. The manifest, the counts of open days and the events that are newer than every
 * archive day are of one view of the data. Events of an open day before an archive day are read later, because their place
 * on the page depends on the counts of the files. Such a day is days old. If it has moved into the archive meanwhile, the
 * search starts again.
 */
async function findRows(
  deps: SearchDeps,
  zoneId: number,
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<FoundPage> {
  const { queries, files } = deps;
  // Without a filter, Postgres knows the counts and reads the page's rows only.
  const viewed = plan.clauses.length === 0 ? withoutKept(deps) : deps;
  for (;;) {
    const asked = { zoneIds: [zoneId], window: plan };
    const { days, open, newest } = await inKeptView(viewed, asked, signal, async (tx, _client, days) => ({
      days,
      ...(await readOpenPage(tx, zoneId, plan, days)),
    }));
    const archived =
      plan.clauses.length === 0
        ? await countDays(files, days, plan, signal)
        : await matchDays(files, days, plan, open, signal);
    const segments = [...open.map((count) => ({ ...count, file: null })), ...archived];
    const parts = cutPage<Segment>(segments, plan);
    const isLate = ({ segment: { file, from } }: PagePart<Segment>) =>
      file === null && from < (days.at(-1)?.from ?? 0);
    const late = parts.filter(isLate);
    const older =
      late.length === 0
        ? []
        : await inSearchView(queries, signal, async (tx) => {
            const now = await readArchivedDays(tx, zoneId, plan);
            return listFiles(now) === listFiles(days) ? readOpenRows(tx, zoneId, plan, late) : null;
          });
    if (older === null) continue;
    const total = segments.reduce((sum, segment) => sum + segment.total, 0);
    const rows = [...newest, ...older].map((event): FoundEvent => ({ ...event, archived: null }));
    rows.push(...(await readFiles(files, parts, signal)));
    // Days do not overlap, and within a day the order is right already.
    rows.sort((one, other) => other.occurredAt - one.occurredAt);
    return { rows, total, source: sourceOf(days) };
  }
}

const listFiles = (days: readonly ArchivedDay[]) =>
  days.flatMap(({ events }) => (events.kept === undefined ? [events.path] : [])).join();

/** The manifest counts whole days. Of days that the window cuts the first row and the number of rows are looked up. */
async function countDays(
  files: SearchDeps["files"],
  days: readonly ArchivedDay[],
  window: Span,
  signal: AbortSignal,
): Promise<Segment[]> {
  const segments: Segment[] = [];
  for (const day of days) {
    let [first, total] = [0, day.rows];
    if (day.from < window.from || day.to > window.to) {
      const statement = countInSpan(files.pathOf(day.events), window);
      const [row = "[0,0]"] = await files.read([day.events], [statement], signal);
      [first, total] = JSON.parse(row) as [number, number];
    }
    segments.push({ ...day, total, file: { day, rows: { first } } });
  }
  return segments;
}

async function matchDays(
  files: SearchDeps["files"],
  days: readonly ArchivedDay[],
  plan: SearchPlan,
  open: readonly OpenCount[],
  signal: AbortSignal,
): Promise<Segment[]> {
  if (days.length === 0) return [];
  const events = days.map((day) => day.events);
  const sources = files.eventsFilesOf(days, plan);
  const toSegment = (file: number, total: number, rows: NonNullable<Segment["file"]>["rows"]): Segment[] => {
    const day = days[file];
    return day === undefined ? [] : [{ from: day.from, to: day.to, total, file: { day, rows } }];
  };
  if (mayBeFew(plan)) {
    const found = readRows(await files.read(events, [fetchSome(sources, plan, FEW)], signal));
    if (found.length < FEW)
      return [...Map.groupBy(found, ({ file }) => file)].flatMap(([file, events]) =>
        toSegment(file, events.length, { events }),
      );
  }
  const newerOpen = days.map(({ to }) =>
    open.reduce((sum, { from, total }) => (from >= to ? sum + total : sum), 0),
  );
  const statement = findMatches(sources, plan, newerOpen);
  return readMatches(await files.read(events, [statement], signal)).flatMap(({ file, total, rows }) =>
    toSegment(file, total, rows),
  );
}

/** So many events are read at once. To find their places first and then read each of its file takes twice as long. */
const FEW = 1_000;
/** Columns of which most values have few events. */
const POINTED = new Set(["ip", "log_id", "request_id"]);

function mayBeFew({ clauses }: SearchPlan): boolean {
  return clauses.some(
    ({ columns, tests, isNegated }) =>
      isNegated !== true &&
      // DuckDB reads all columns of every event for a test of two.
      columns.length === 1 &&
      columns.every((column) => POINTED.has(column)) &&
      tests.every(({ kind }) => kind === "equals"),
  );
}

/** Returns the events of parts of archive days. */
async function readFiles(
  files: SearchDeps["files"],
  parts: readonly PagePart<Segment>[],
  signal: AbortSignal,
): Promise<FoundEvent[]> {
  const toFound =
    (day: ArchivedDay | undefined) =>
    ({ file: _file, row, ...event }: PlacedEvent): FoundEvent => ({ ...event, archived: toPlace(day, row) });
  const read: FoundEvent[] = [];
  const wanted = parts.flatMap(({ segment: { file, total }, skip, taken }) => {
    if (file === null) return [];
    const { day, rows } = file;
    const first = total - skip - taken;
    if (!("events" in rows))
      return { day, rows: "first" in rows ? { first: rows.first + first, count: taken } : rows };
    read.push(
      ...rows.events
        .slice(first, first + taken)
        .reverse()
        .map(toFound(day)),
    );
    return [];
  });
  if (wanted.length === 0) return read;
  const statement = fetchRows(wanted.map(({ day, rows }) => ({ ...files.eventsFileOf(day.events), rows })));
  const found = await files.read(
    wanted.map(({ day }) => day.events),
    [statement],
    signal,
  );
  return readRows(found)
    .reverse()
    .map((event) => toFound(wanted[event.file]?.day)(event));
}

/** Records of kept hours are in Postgres. */
function toPlace(day: ArchivedDay | undefined, row: number): FoundEvent["archived"] {
  return day?.events.kept === undefined ? { records: day?.records ?? null, row } : null;
}

const RECORDS_AT_ONCE = 500;

export interface MethodEvent {
  readonly event: FoundEvent;
  readonly method: string;
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
): Promise<{ readonly events: readonly MethodEvent[]; readonly source: SearchSource }> {
  const wanted = { ...plan, groupBy: [], methodClauses: [], page: 0, pageSize: MAX_METHOD_EVENTS };
  const { rows, total, source } = await searchRows(deps, zoneId, wanted, signal);
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

/** Returns how many events of a zone a span has. Reads counts, and the events of cut hours and days only. */
export async function countUnfiltered(
  { queries, files }: SearchDeps,
  zoneId: number,
  { from, to }: Span,
  signal: AbortSignal,
): Promise<number> {
  const query = { from, to, clauses: [] };
  const { days, open } = await inSearchView(queries, signal, async (tx) => {
    const days = await readArchivedDays(tx, zoneId, query);
    return { days, open: await countOpen(tx, zoneId, query, cutOut(query, days)) };
  });
  const counts = [...open, ...(await countDays(files, days, query, signal))];
  return counts.reduce((sum, { total }) => sum + total, 0);
}
