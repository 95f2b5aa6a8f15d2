/** The three routes of a backfill: the list, the search and the export. */

import type { Queryable } from "#db/client.ts";
import { readHashKey } from "#db/health/server-facts.ts";
import { readListPass } from "#db/ingest/list-passes.ts";
import { holdPatiently } from "#db/postgres/hold-lease.ts";
import { finishHours } from "#db/proof/backfills.ts";
import { advanceSearch } from "#db/proof/horizons.ts";
import { readBy, readPage } from "#ingest/rules/read-page.ts";
import { storeEntries } from "#jobs/ingest/copy-search.ts";
import { searchSpan } from "#jobs/ingest/poll-events.ts";
import { walkDay, walkLeaseName } from "#jobs/ingest/walk-days.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfDay, toDay } from "#model/horizon.ts";
import { EventRow } from "#platform/contract/event-logs.ts";
import { SETTLE_MS } from "#proof/rules/hour-proof.ts";
import type { SearchSpan } from "#proof/rules/plan-search.ts";
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
const WAIT_MS = 600_000;
const MAX_PASSES = 3;

/**
 * Backfills whole days with the date-paged list: the record of every event, but neither feature nor JA4. Each day is one
 * full pass with the lease, the ledger and the cursor of the service's own passes. So the service waits for it, an
 * interrupted pass continues where it stopped, and the end of the pass is evidence for a seal.
 */
export async function backfillByList(
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
      { name, waitMs: WAIT_MS, onWait },
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
export function backfillBySearch(
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
export function backfillByExport(
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
