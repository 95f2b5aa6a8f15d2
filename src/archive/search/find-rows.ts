import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
import {
  countInSpan,
  type FileRows,
  fetchRows,
  findMatches,
  readMatches,
  readRows,
} from "#archive/rules/sql/find-rows.ts";
import { type ArchivedDay, type ArchiveFile, cutOut, readArchivedDays } from "#db/archive/archived-days.ts";
import { countEvents, countMatches, type OpenCount, readOpenRows } from "#db/archive/open-rows.ts";
import { inSearchTransaction } from "#db/archive/search-condition.ts";
import type { Queryable } from "#db/client.ts";
import { runCancellable } from "#db/postgres/transaction.ts";
import type { Span } from "#model/horizon.ts";
import type { SearchSource } from "#model/kinds.ts";
import type { ArchivedEvent } from "#model/waf-event.ts";
import type { SearchDeps } from "./searching.ts";

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
  readonly source: SearchSource;
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
 * Days are counted first, so that only the events of the page are read.
 *
 * No transaction is open while DuckDB works. The manifest, the counts of open days and the events that are newer than every
 * archive day are of one view of the data. Events of an open day before an archive day are read later, because their place
 * on the page depends on the counts of the files. Such a day is days old. If it has moved into the archive meanwhile, the
 * search starts again.
 */
export async function findRows(
  deps: SearchDeps,
  zoneId: number,
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<FoundPage> {
  const page = { offset: plan.page * plan.pageSize, limit: plan.pageSize };
  const isFlat = plan.clauses.length === 0;
  const search = { ...deps, zoneId, plan, signal };
  for (;;) {
    const { days, open, newest } = await runCancellable(deps.queries, signal, (database) =>
      inSearchTransaction(database, async (tx) => {
        const days = await readArchivedDays(tx, zoneId, plan);
        const spans = cutOut(plan, days);
        const open = isFlat
          ? await countEvents(tx, zoneId, spans)
          : await countMatches(tx, zoneId, plan, spans);
        const lastDayEnd = days.at(-1)?.to ?? -Infinity;
        const newer = open
          .filter(({ from }) => from >= lastDayEnd)
          .map((count) => ({ ...count, file: null }));
        return { days, open, newest: await readOpen(tx, search, cutPage(newer, page)) };
      }),
    );
    const archived = isFlat
      ? await countDays(deps.files, days, plan, signal)
      : await matchDays(deps.files, days, plan, { page, open, signal });
    const segments = [...open.map((count) => ({ ...count, file: null })), ...archived];
    const parts = cutPage(segments, page);
    const older = parts.filter(
      ({ segment }) => segment.file === null && segment.from < (days.at(-1)?.from ?? 0),
    );
    const late = await readLater(search, days, older);
    if (late === null) continue;
    const total = segments.reduce((sum, segment) => sum + segment.total, 0);
    const rows = [...newest, ...(await readFiles(search, parts)), ...late];
    // Days do not overlap, and within a day the order is right already.
    rows.sort((one, other) => other.occurredAt - one.occurredAt);
    return { rows, total, source: days.length > 0 ? "archive" : "events" };
  }
}

/** Events of open days before an archive day; null if the manifest has changed. */
async function readLater(
  search: Reading,
  days: readonly ArchivedDay[],
  parts: readonly PagePart[],
): Promise<FoundEvent[] | null> {
  if (parts.length === 0) return [];
  const { queries, zoneId, plan, signal } = search;
  return runCancellable(queries, signal, (database) =>
    inSearchTransaction(database, async (tx) => {
      const now = await readArchivedDays(tx, zoneId, plan);
      return listFiles(now) === listFiles(days) ? readOpen(tx, search, parts) : null;
    }),
  );
}

const listFiles = (days: readonly ArchivedDay[]) => days.map(({ events }) => events.path).join();

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
  const statement = findMatches(events.map(files.eventsFileOf), plan, { ...page, newerOpen });
  return readMatches(await files.read(events, [statement], signal)).flatMap(({ file, total, rows }) => {
    const day = days[file];
    return day === undefined ? [] : [{ from: day.from, to: day.to, total, file: { day, rows, firstRow: 0 } }];
  });
}

interface Reading extends SearchDeps {
  readonly zoneId: number;
  readonly plan: SearchPlan;
  readonly signal: AbortSignal;
}

/** The events of a segment that are on the page: `taken` after the newest `skip`. */
interface PagePart {
  readonly segment: Segment;
  readonly skip: number;
  readonly taken: number;
}

/** Returns what of each segment is on the page, the newest first. */
function cutPage(segments: readonly Segment[], page: Page): PagePart[] {
  let before = 0;
  return segments
    .toSorted((one, other) => other.from - one.from)
    .flatMap((segment) => {
      const skip = Math.max(0, page.offset - before);
      const taken = Math.min(segment.total - skip, page.offset + page.limit - before - skip);
      before += segment.total;
      return taken > 0 ? [{ segment, skip, taken }] : [];
    });
}

/** Returns the events of parts of open days. */
async function readOpen(
  tx: Queryable,
  { zoneId, plan }: Reading,
  parts: readonly PagePart[],
): Promise<FoundEvent[]> {
  const [first] = parts;
  if (first === undefined) return [];
  const spans = parts.map(({ segment }) => ({
    from: Math.max(segment.from, plan.from),
    to: Math.min(segment.to, plan.to),
  }));
  const matching = parts.reduce((sum, { segment }) => sum + segment.total, 0);
  const present =
    plan.clauses.length === 0
      ? matching
      : (await countEvents(tx, zoneId, spans)).reduce((sum, { total }) => sum + total, 0);
  const limit = parts.reduce((sum, { taken }) => sum + taken, 0);
  const rows = await readOpenRows(tx, zoneId, plan, spans, { skip: first.skip, limit, matching, present });
  return rows.map((event) => ({ ...event, archived: null }));
}

async function readFiles(
  { files, plan, signal }: Reading,
  parts: readonly PagePart[],
): Promise<FoundEvent[]> {
  const wanted = parts.flatMap(({ segment: { file, total }, skip, taken }) => {
    if (file === null) return [];
    const first = file.firstRow + total - skip - taken;
    return { day: file.day, rows: plan.clauses.length === 0 ? { first, count: taken } : file.rows };
  });
  return wanted.length === 0 ? [] : (await readArchivedRows(files, wanted, signal)).reverse();
}

/** Returns the rows of archive days, the days in the given order, each day's rows oldest first. */
export async function readArchivedRows(
  files: SearchDeps["files"],
  wanted: readonly { readonly day: ArchivedDay; readonly rows: FileRows["rows"] }[],
  signal: AbortSignal,
): Promise<FoundEvent[]> {
  const statement = fetchRows(wanted.map(({ day, rows }) => ({ ...files.eventsFileOf(day.events), rows })));
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
