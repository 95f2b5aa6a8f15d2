import {
  type ArchivedDay,
  type ArchiveFile,
  cutOut,
  readArchivedDays,
} from "../../../db/archive/archived-days.ts";
import type { Queryable } from "../../../db/client.ts";
import { runCancellable } from "../../../db/postgres/cancellable.ts";
import { countEvents, countMatches, type OpenCount } from "../../../db/search/count-open-events.ts";
import { readOpenRows } from "../../../db/search/read-open-rows.ts";
import { inSearchTransaction } from "../../../db/search/search-transaction.ts";
import type { SearchPlan } from "../../archive/query/plan-search.ts";
import type { ArchivedEvent } from "../../archive/records/archived-event.ts";
import {
  countInSpan,
  type FileRows,
  fetchRows,
  findMatches,
  readMatches,
  readRows,
} from "../../archive/sql/find-rows.ts";
import type { Span } from "../../model/span.ts";
import type { SearchDeps } from "./search-deps.ts";

/** An event, and where its record is if its day is archived. */
export interface FoundEvent extends ArchivedEvent {
  /** Null if the event is in Postgres, and so is its record. */
  readonly archived: { readonly records: ArchiveFile | null; readonly row: number } | null;
}

export interface FoundPage {
  readonly rows: readonly FoundEvent[];
  /** Number of events on all pages. */
  readonly total: number;
  /** Whether files of the archive had a part in the answer. */
  readonly source: "archive" | "events";
}

/** Events of a part of the window, of which there is no other. */
interface Segment extends Span {
  readonly total: number;
  /** Null if the events are in Postgres. */
  readonly file: {
    readonly day: ArchivedDay;
    readonly rows: FileRows["rows"];
    readonly firstRow: number;
  } | null;
}

interface Page {
  readonly offset: number;
  readonly limit: number;
}

/**
 * Returns one page of events, newest first; those of the same millisecond by log id, byte by byte, the greatest first.
 * Days are counted first, so that only the events of the page are read. All is of one view of the data.
 */
export function findRows(
  { archive, files }: SearchDeps,
  zoneId: number,
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<FoundPage> {
  const page = { offset: plan.page * plan.pageSize, limit: plan.pageSize };
  return runCancellable(archive, signal, (database) =>
    inSearchTransaction(database, async (tx) => {
      const days = await readArchivedDays(tx, zoneId, plan);
      const spans = cutOut(plan, days);
      const isFlat = plan.clauses.length === 0;
      const open = isFlat
        ? await countEvents(tx, zoneId, spans)
        : await countMatches(tx, zoneId, plan, spans);
      const archived = isFlat
        ? await countDays(files, days, plan, signal)
        : await matchDays(files, days, plan, { page, open, signal });
      const segments = [...open.map((count) => ({ ...count, file: null })), ...archived].sort(
        (one, other) => other.from - one.from,
      );
      const total = segments.reduce((sum, segment) => sum + segment.total, 0);
      const rows = await readPage({ tx, files, zoneId, plan, signal }, segments, page);
      return { rows, total, source: days.length > 0 ? "archive" : "events" };
    }),
  );
}

/** The manifest counts whole days. Of days that the window cuts the first row and the number of rows are looked up. */
export async function countDays(
  files: SearchDeps["files"],
  days: readonly ArchivedDay[],
  window: Span,
  signal: AbortSignal,
): Promise<Segment[]> {
  const segments: Segment[] = [];
  for (const day of days) {
    const isWhole = day.from >= window.from && day.to <= window.to;
    const [firstRow, total] = isWhole
      ? [0, day.rows]
      : await readNumbers(files, day.events, countInSpan(files.pathOf(day.events), window), signal);
    segments.push({ ...day, total, file: { day, rows: [], firstRow } });
  }
  return segments;
}

async function readNumbers(
  files: SearchDeps["files"],
  file: ArchiveFile,
  statement: ReturnType<typeof countInSpan>,
  signal: AbortSignal,
): Promise<[number, number]> {
  const [row = "[0,0]"] = await files.read([file], [statement], signal);
  return JSON.parse(row) as [number, number];
}

async function matchDays(
  files: SearchDeps["files"],
  days: readonly ArchivedDay[],
  plan: SearchPlan,
  { page, open, signal }: { page: Page; open: readonly OpenCount[]; signal: AbortSignal },
): Promise<Segment[]> {
  if (days.length === 0) return [];
  const newerOpen = days.map(({ to }) =>
    open.reduce((sum, { from, total }) => (from >= to ? sum + total : sum), 0),
  );
  const events = days.map((day) => day.events);
  const statement = findMatches(events.map(files.pathOf), plan, { ...page, newerOpen });
  return readMatches(await files.read(events, [statement], signal)).flatMap(({ file, total, rows }) => {
    const day = days[file];
    return day === undefined ? [] : [{ from: day.from, to: day.to, total, file: { day, rows, firstRow: 0 } }];
  });
}

interface Reading extends Pick<SearchDeps, "files"> {
  readonly tx: Queryable;
  readonly zoneId: number;
  readonly plan: SearchPlan;
  readonly signal: AbortSignal;
}

async function readPage(
  { tx, files, zoneId, plan, signal }: Reading,
  segments: readonly Segment[],
  page: Page,
): Promise<FoundEvent[]> {
  const isFlat = plan.clauses.length === 0;
  const open: OpenCount[] = [];
  const place = { skip: 0, limit: 0 };
  const wanted: { day: ArchivedDay; rows: FileRows["rows"] }[] = [];
  let before = 0;
  for (const segment of segments) {
    const skip = Math.max(0, page.offset - before);
    const taken = Math.min(segment.total - skip, page.offset + page.limit - before - skip);
    before += segment.total;
    if (taken <= 0) continue;
    if (segment.file === null) {
      if (open.length === 0) place.skip = skip;
      place.limit += taken;
      open.push(segment);
    } else {
      const { day, rows, firstRow } = segment.file;
      const first = firstRow + segment.total - skip - taken;
      wanted.push({ day, rows: isFlat ? { first, count: taken } : rows });
    }
  }
  const found: FoundEvent[] = [];
  if (place.limit > 0) {
    const spans = open.map(({ from, to }) => ({
      from: Math.max(from, plan.from),
      to: Math.min(to, plan.to),
    }));
    const matching = open.reduce((sum, { total }) => sum + total, 0);
    const present = isFlat
      ? matching
      : (await countEvents(tx, zoneId, spans)).reduce((sum, { total }) => sum + total, 0);
    const rows = await readOpenRows(tx, zoneId, plan, spans, { ...place, matching, present });
    found.push(...rows.map((event) => ({ ...event, archived: null })));
  }
  if (wanted.length > 0) found.push(...(await readArchivedRows(files, wanted, signal)).reverse());
  // Days do not overlap, and within a day the order is right already.
  return found.sort((one, other) => other.occurredAt - one.occurredAt);
}

/** Returns the rows of archive days, the days in the given order, each day's rows oldest first. */
export async function readArchivedRows(
  files: SearchDeps["files"],
  wanted: readonly { readonly day: ArchivedDay; readonly rows: FileRows["rows"] }[],
  signal: AbortSignal,
): Promise<FoundEvent[]> {
  const statement = fetchRows(wanted.map(({ day, rows }) => ({ path: files.pathOf(day.events), rows })));
  const events = readRows(
    await files.read(
      wanted.map(({ day }) => day.events),
      [statement],
      signal,
    ),
  );
  return events.map(({ file, row, ...event }) => ({
    ...event,
    archived: { records: wanted[file]?.day.records ?? null, row },
  }));
}
