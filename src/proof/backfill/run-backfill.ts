/** Plans a backfill and runs it over its three routes: the list, the search and the export. */

import type { Queryable } from "#db/client.ts";
import { readHashKey } from "#db/health/server-facts.ts";
import { readListPass } from "#db/ingest/list-passes.ts";
import { holdPatiently } from "#db/postgres/hold-lease.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import {
  type Backfill,
  type BackfillKey,
  finishHours,
  openBackfill,
  readBackfill,
} from "#db/proof/backfills.ts";
import { advanceSearch, readSearchedHours } from "#db/proof/horizons.ts";
import { readBy, readPage } from "#ingest/rules/read-page.ts";
import { storeEntries } from "#jobs/ingest/copy-search.ts";
import { searchSpan } from "#jobs/ingest/poll-events.ts";
import { walkDay, walkLeaseName } from "#jobs/ingest/walk-days.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { firstListedDay, horizonAt, type Span, startOfDay, startOfHour, toDay } from "#model/horizon.ts";
import type { BackfillRoute } from "#model/kinds.ts";
import { EventRow } from "#platform/contract/event-logs.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { SETTLE_MS } from "#proof/rules/hour-proof.ts";
import { isBackfilled, type SearchedHour, type SearchSpan } from "#proof/rules/plan-search.ts";
import { type BackfillDeps, BackfillError, type Expired, type RunningBackfill } from "./backfill-deps.ts";
import {
  type CsvRecord,
  type ExportColumns,
  readCsv,
  readExportHeader,
  toExportEntry,
  toExportEvent,
} from "./read-csv.ts";

/** How long the backfill waits for the service, which holds the lease of a day while it reads the day. */
const ROUTES_WAIT_MS = 600_000;
const MAX_PASSES = 3;

/**
 * Backfills whole days with the date-paged list: the record of every event, but neither feature nor JA4. Each day is one
 * full pass with the lease, the ledger and the cursor of the service's own passes. So the service waits for it, an
 * interrupted pass continues where it stopped, and the end of the pass is evidence for a seal.
 */
async function backfillByList(
  deps: BackfillDeps,
  { backfill }: RunningBackfill,
  signal: AbortSignal,
): Promise<Expired[]> {
  const { database, clock } = deps;
  const { zoneId, to } = backfill;
  for (let dayStart = startOfDay(backfill.doneThrough); dayStart < to; dayStart += DAY_MS) {
    const name = walkLeaseName(zoneId, dayStart);
    const onWait = () => deps.onWait(`waiting: the service is reading ${toDay(dayStart)}`);
    const doneAt = clock();
    await holdPatiently(
      database,
      { name, waitMs: ROUTES_WAIT_MS, onWait },
      (lease) => walkToEnd(deps, { zoneId, dayStart, lease }, AbortSignal.any([signal, lease.lost])),
      signal,
    );
    await finishHours(database.db, backfill, { from: dayStart, to: Math.min(dayStart + DAY_MS, to), doneAt });
  }
  return [];
}

async function walkToEnd(
  deps: BackfillDeps,
  day: Parameters<typeof walkDay>[1],
  signal: AbortSignal,
): Promise<void> {
  const name = toDay(day.dayStart);
  // If the platform refuses a token, the pass begins again.
  for (let passes = 0; passes < MAX_PASSES; passes++) {
    const state = await readListPass(deps.database.db, day.zoneId, name);
    const plan = state?.passResult === null ? "resume" : "full";
    const ended = await walkDay(deps, day, { plan, state }, signal);
    signal.throwIfAborted();
    if (ended?.passResult === "full") return;
  }
  throw new BackfillError(
    "BACKFILL_LOOPED",
    `the list of ${name} cannot be read to its end: the platform repeats or refuses its tokens; use --route search`,
  );
}

/** Backfills with the searches of a poll: every dimension and the message of each event, and evidence for a seal. */
function backfillBySearch(
  deps: BackfillDeps,
  running: RunningBackfill,
  signal: AbortSignal,
): Promise<Expired[]> {
  const { lease, backfill } = running;
  const policy = { ...deps, settleMs: SETTLE_MS };
  return backfillHours(
    deps,
    running,
    async (span, finish) => {
      const conclude = async (tx: Queryable, through: number) => {
        if (through === span.to) await finish(tx);
      };
      const search = { zoneId: backfill.zoneId, lease, conclude };
      const { contradiction } = await searchSpan(policy, search, span, signal);
      if (contradiction !== null) throw endedEarly("search", span, `early (${contradiction.reason})`);
    },
    signal,
  );
}

function endedEarly(what: string, { from, to }: SearchSpan, how: string): BackfillError {
  const span = `${new Date(from).toISOString()} to ${new Date(to).toISOString()}`;
  return new BackfillError(
    "BACKFILL_SHORT",
    `the ${what} of ${span} ended ${how}; run the same command again`,
  );
}

const RECORDS_PER_TRANSACTION = 5_000;

/**
 * Backfills with one CSV export per hour: the fewest calls and every dimension, but neither message nor record. The
 * platform does not document how a truncated file looks, so each file is compared with the count of a search just before.
 */
function backfillByExport(
  deps: BackfillDeps,
  running: RunningBackfill,
  signal: AbortSignal,
): Promise<Expired[]> {
  return backfillHours(deps, running, (...hour) => exportHour(deps, running, hour, signal), signal);
}

async function exportHour(
  deps: BackfillDeps,
  running: RunningBackfill,
  [span, finish]: HourToRead,
  signal: AbortSignal,
): Promise<void> {
  const shieldZoneId = running.backfill.zoneId;
  const { from, to } = span;
  const { page } = await deps.edge.searchEventLogs(
    { shieldZoneId, request: { from, to, pageSize: 1 } },
    signal,
  );
  const { csv } = await deps.edge.exportEventLogs({ shieldZoneId, request: { from, to } }, signal);
  let columns: ExportColumns | undefined;
  let batch: CsvRecord[] = [];
  let records = 0;
  let expectNew = span.isFirst;
  for await (const record of readCsv(csv)) {
    if (columns === undefined) {
      columns = readExportHeader(record.cells);
      continue;
    }
    batch.push(record);
    records++;
    if (batch.length < RECORDS_PER_TRANSACTION) continue;
    expectNew = await storeRecords(deps, running, { columns, batch, expectNew });
    batch = [];
  }
  columns ??= readExportHeader([]);
  if (records < page.total) throw endedEarly("export", span, `after ${records} of ${page.total} events`);
  const conclude = async (tx: Queryable) => {
    await advanceSearch(tx, shieldZoneId, { startsAt: span.hour, searchedThrough: to });
    await finish(tx);
  };
  await storeRecords(deps, running, { columns, batch, expectNew, conclude });
}

interface Batch {
  readonly columns: ExportColumns;
  readonly batch: readonly CsvRecord[];
  readonly expectNew: boolean;
  readonly conclude?: (tx: Queryable) => Promise<void>;
}

/** Stores the records of a batch. Returns whether the next batch is probably new as well. */
async function storeRecords(
  deps: BackfillDeps,
  { backfill, lease }: RunningBackfill,
  { columns, batch, expectNew, conclude }: Batch,
): Promise<boolean> {
  const raws = batch.map(({ text }) => Buffer.from(text));
  const entries = batch.map(({ cells }) => toExportEntry(columns, cells));
  const hashKey = await readHashKey(deps.database);
  const source = { route: "search", day: null, receivedAt: deps.clock(), hashKey } as const;
  const reader = readBy(EventRow, (row) => toExportEvent(columns, row));
  const read = readPage(raws, { ...source, reader }, entries);
  const inserted = await storeEntries(deps, {
    ...read,
    zoneId: backfill.zoneId,
    lease,
    expectNew,
    bytes: raws.reduce((sum, { length }) => sum + length, 0),
    conclude: async (tx) => conclude?.(tx),
  });
  return read.events.length > 0 && inserted === read.events.length;
}

/** An hour, and what its last transaction calls. */
type HourToRead = readonly [span: SearchSpan, finish: (tx: Queryable) => Promise<void>];

/**
 * Reads the hours that a backfill has left with `readHour` of the route, the hour that expires first in front. Returns the
 * spans that expired before they were read.
 */
async function backfillHours(
  { clock }: BackfillDeps,
  { backfill }: RunningBackfill,
  readHour: (...hour: HourToRead) => Promise<unknown>,
  signal: AbortSignal,
): Promise<Expired[]> {
  const expired: Expired[] = [];
  for (const { startsAt: hour, isEmpty: isFirst } of backfill.left) {
    signal.throwIfAborted();
    const doneAt = clock();
    const [begin, to] = [Math.max(hour, backfill.from), Math.min(hour + HOUR_MS, backfill.to)];
    const from = Math.max(begin, horizonAt(doneAt));
    if (from > begin) expired.push({ from: begin, to: Math.min(from, to) });
    const finish = (tx: Queryable) => finishHours(tx, backfill, { from: hour, to, doneAt });
    if (from < to) await readHour({ hour, from, to, isFirst }, finish);
  }
  return expired;
}

/** Longer than the lease of a killed command. */
const WAIT_MS = 20_000;

const READ = { search: backfillBySearch, list: backfillByList, export: backfillByExport } satisfies Record<
  BackfillRoute,
  unknown
>;

interface BackfillToRun {
  readonly key: BackfillKey;
  /** Begins at the start of the span, even if a part was read before. */
  readonly restart: boolean;
  /** Called before anything is read. */
  readonly onOpened: (backfill: Backfill) => Promise<void>;
}

export interface RanBackfill {
  /** Whether the backfill was already complete, so that nothing was read. */
  readonly wasEnded: boolean;
  readonly newEvents: number;
  /** The spans that the platform forgot before they were read. */
  readonly expired: readonly Expired[];
}

/**
 * Reads a span of a zone again and stores the missing events. An interrupted backfill continues where it stopped, even
 * after kill -9: the last page of an hour is one transaction with the mark that the hour was read. It may run beside the service
 * and beside another backfill: storing an event twice changes nothing, and only the holder of the lease commits.
 */
export function runBackfill(
  deps: BackfillDeps,
  { key, restart, onOpened }: BackfillToRun,
  signal: AbortSignal,
): Promise<RanBackfill> {
  const { database, clock, onWait } = deps;
  const name = `backfill.${key.zoneId}`;
  const wait = () => onWait(`waiting: another backfill of zone ${key.zoneId} runs or was just killed`);
  return holdPatiently(
    database,
    { name, waitMs: WAIT_MS, onWait: wait },
    async (lease) => {
      const backfill = await inTransaction(database, ({ tx }) =>
        openBackfill(tx, key, { now: clock(), restart }),
      );
      await onOpened(backfill);
      if (backfill.endedAt !== null) return { wasEnded: true, newEvents: backfill.newEvents, expired: [] };
      const expired = await READ[key.route](deps, { backfill, lease }, AbortSignal.any([signal, lease.lost]));
      // The hours that the platform forgot before they were read.
      await finishHours(database.db, backfill, { ...key, doneAt: clock() });
      const { newEvents } = await readBackfill(database.db, key, backfill.at);
      return { wasEnded: false, newEvents, expired };
    },
    signal,
  );
}

export interface AskedBackfill extends Span {
  readonly zoneId: number;
  readonly route: BackfillRoute | "auto";
}

/**
 * Returns the backfill to run. It begins with the whole hour of `from`, or with the oldest moment that the platform will still
 * show: the start of a span of exactly 72 hours expires while the backfill runs.
 */
export async function planBackfill(
  db: Queryable,
  { zoneId, route, ...span }: AskedBackfill,
  now: number,
): Promise<BackfillKey> {
  const from = Math.max(startOfHour(span.from), horizonAt(now));
  const to = Math.max(Math.min(span.to, now), from + 1);
  const range = { fromMs: startOfHour(from), toMs: to };
  const picked =
    route === "auto" ? pickRoute(now, { from, to }, await readSearchedHours(db, zoneId, range)) : route;
  return { zoneId, route: picked, from, to };
}

/** Returns the platform's count of what is left to read. Returns 0 if the search fails: the progress then has no total. */
export async function countUpstream(
  edge: Pick<EdgeClient, "searchEventLogs">,
  { route, doneThrough, to, zoneId }: Backfill,
  now: number,
): Promise<number> {
  const begin = route === "list" ? startOfDay(doneThrough) : doneThrough;
  const request = { from: Math.max(begin, horizonAt(now)), to, pageSize: 1 };
  if (request.from >= request.to) return 0;
  return edge.searchEventLogs({ shieldZoneId: zoneId, request }).then(
    ({ page }) => page.total,
    () => 0,
  );
}

/**
 * Returns the fastest route that leaves nothing unknown. A search has every dimension of an event. The list has larger
 * pages but neither feature nor JA4, so it is picked only for whole days that were searched: it then adds records and
 * events that the search did not show. The export is never picked, because messages would stay unknown.
 */
function pickRoute(now: number, { from, to }: Span, hours: readonly SearchedHour[]): BackfillRoute {
  const isDays = from % DAY_MS === 0 && (to % DAY_MS === 0 || to === now) && to - from >= DAY_MS;
  if (!isDays || from < firstListedDay(now)) return "search";
  return isBackfilled(now, hours, { fromMs: from, toMs: to }) ? "list" : "search";
}
