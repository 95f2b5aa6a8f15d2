/** The three routes of a backfill: the list, the search and the export. */

import type { Queryable } from "#db/client.ts";
import { advanceBackfill } from "#db/ingest/backfills.ts";
import { readListPass } from "#db/ingest/list-passes.ts";
import { readCoverageHours } from "#db/proof/coverage-report.ts";
import { advanceSearch } from "#db/proof/horizons.ts";
import { readBy, readPage } from "#ingest/rules/read-page.ts";
import { copySearch } from "#jobs/ingest/copy-search.ts";
import { readHashKey, storeEntries } from "#jobs/ingest/store-entries.ts";
import { walkDay, walkLeaseName } from "#jobs/ingest/walk-day.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfDay, startOfHour, toDay } from "#model/horizon.ts";
import { EventRow } from "#platform/contract/event-logs.ts";
import { SETTLE_MS } from "#proof/rules/hour-proof.ts";
import { isClosingSearch } from "#proof/rules/plan-comparison.ts";
import {
  type BackfillDeps,
  BackfillError,
  type Expired,
  holdPatiently,
  type RunningBackfill,
} from "./backfill-deps.ts";
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
  const { zoneId, to } = backfill;
  for (let dayStart = startOfDay(backfill.doneThrough); dayStart < to; dayStart += DAY_MS) {
    const name = walkLeaseName(zoneId, dayStart);
    const onWait = () => deps.onWait(`waiting: the service is reading ${toDay(dayStart)}`);
    await holdPatiently(
      deps.database,
      { name, waitMs: WAIT_MS, onWait },
      (lease) => walkToEnd(deps, { backfill, dayStart, lease }, AbortSignal.any([signal, lease.lost])),
      signal,
    );
    await advanceBackfill(deps.database.db, backfill, { through: dayStart + DAY_MS, newEvents: 0 });
  }
  return [];
}

interface BackfilledDay {
  readonly backfill: RunningBackfill["backfill"];
  readonly dayStart: number;
  readonly lease: { readonly name: string; readonly fence: number };
}

async function walkToEnd(
  deps: BackfillDeps,
  { backfill, dayStart, lease }: BackfilledDay,
  signal: AbortSignal,
): Promise<void> {
  const { zoneId } = backfill;
  const day = {
    zoneId,
    dayStart,
    lease,
    conclude: (tx: Parameters<typeof advanceBackfill>[0], { inserted }: { inserted: number }) =>
      advanceBackfill(tx, backfill, { through: null, newEvents: inserted }),
  };
  // If the platform refuses a token, the pass begins again.
  for (let passes = 0; passes < MAX_PASSES; passes++) {
    const state = await readListPass(deps.database.db, zoneId, toDay(dayStart));
    const plan = state?.passResult === null ? "resume" : "full";
    const ended = await walkDay(deps, day, { plan, state }, signal);
    signal.throwIfAborted();
    if (ended?.passResult === "full") return;
  }
  throw new BackfillError(
    "BACKFILL_LOOPED",
    `the list of ${toDay(dayStart)} cannot be read to its end: the platform repeats or refuses its tokens; use --route search`,
  );
}

/** Backfills with flat searches in pages of 500: every dimension and the message of each event. */
export function backfillBySearch(
  deps: BackfillDeps,
  running: RunningBackfill,
  signal: AbortSignal,
): Promise<Expired[]> {
  const { lease, backfill } = running;
  return backfillHours(
    deps,
    { ...running, isProof: true },
    async ({ isFirst: expectNew, ...hour }) => {
      const search = { ...hour, expectNew, zoneId: backfill.zoneId, lease };
      const { contradiction } = await copySearch(deps, search, signal);
      if (contradiction === null) return;
      const span = `${new Date(hour.from).toISOString()} to ${new Date(hour.to).toISOString()}`;
      throw new BackfillError(
        "BACKFILL_SHORT",
        `the search of ${span} ended early (${contradiction.reason}); run the same command again`,
      );
    },
    signal,
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
  return backfillHours(
    deps,
    { ...running, isProof: false },
    (hour) => exportHour(deps, running, hour, signal),
    signal,
  );
}

async function exportHour(
  deps: BackfillDeps,
  running: RunningBackfill,
  hour: HourToRead,
  signal: AbortSignal,
): Promise<void> {
  const shieldZoneId = running.backfill.zoneId;
  const { from, to } = hour;
  const { page } = await deps.edge.searchEventLogs(
    { shieldZoneId, request: { from, to, pageSize: 1 } },
    signal,
  );
  const { csv } = await deps.edge.exportEventLogs({ shieldZoneId, request: { from, to } }, signal);
  let columns: ExportColumns | undefined;
  let batch: CsvRecord[] = [];
  let records = 0;
  let expectNew = hour.isFirst;
  for await (const record of readCsv(csv)) {
    if (columns === undefined) {
      columns = readExportHeader(record.cells);
      continue;
    }
    batch.push(record);
    records++;
    if (batch.length < RECORDS_PER_TRANSACTION) continue;
    expectNew = await storeRecords(deps, running, { ...hour, columns, batch, expectNew, through: null });
    batch = [];
  }
  columns ??= readExportHeader([]);
  if (records < page.total) {
    const span = `${new Date(from).toISOString()} to ${new Date(to).toISOString()}`;
    throw new BackfillError(
      "BACKFILL_SHORT",
      `the export of ${span} ended after ${records} of ${page.total} events; run the same command again`,
    );
  }
  await storeRecords(deps, running, { ...hour, columns, batch, expectNew, through: to });
}

interface Batch extends HourToRead {
  readonly columns: ExportColumns;
  readonly batch: readonly CsvRecord[];
  readonly expectNew: boolean;
  readonly through: number | null;
}

/** Stores the records of a batch. Returns whether the next batch is probably new as well. */
async function storeRecords(
  deps: BackfillDeps,
  { backfill, lease }: RunningBackfill,
  { columns, batch, expectNew, through, onPage, conclude }: Batch,
): Promise<boolean> {
  const raws = batch.map(({ text }) => Buffer.from(text));
  const entries = batch.map(({ cells }) => toExportEntry(columns, cells));
  const hashKey = await readHashKey(deps.database);
  const source = { route: "search", day: null, receivedAt: deps.clock(), hashKey } as const;
  const reader = readBy(EventRow, (row) => toExportEvent(columns, row));
  const read = readPage(raws, { ...source, ...reader }, entries);
  const inserted = await storeEntries(deps, {
    ...read,
    zoneId: backfill.zoneId,
    lease,
    expectNew,
    bytes: raws.reduce((sum, { length }) => sum + length, 0),
    conclude: async (tx, stored) => {
      await onPage(tx, stored);
      if (through !== null) await conclude(tx, through);
    },
  });
  return read.events.length > 0 && inserted === read.events.length;
}

/** A part of one hour, epoch ms, and the callbacks for its transactions. */
interface HourToRead {
  readonly from: number;
  readonly to: number;
  /** Nothing of the hour is stored yet. */
  readonly isFirst: boolean;
  /** Called in the transaction of each page. */
  readonly onPage: (tx: Queryable, page: { readonly inserted: number }) => Promise<void>;
  /** Called in the transaction after which everything before `through` is stored. */
  readonly conclude: (tx: Queryable, through: number) => Promise<void>;
}

/**
 * Reads the rest of a backfill hour by hour with `readHour` of the route, the hour that expires first in front. An hour
 * that was read from its start counts as searched, so the service does not search it again. With `isProof`, a settled
 * hour that was read completely also counts as having its closing search. Returns the spans that expired before they
 * were read.
 */
async function backfillHours(
  deps: BackfillDeps,
  { backfill, isProof }: RunningBackfill & { readonly isProof: boolean },
  readHour: (hour: HourToRead) => Promise<unknown>,
  signal: AbortSignal,
): Promise<Expired[]> {
  const { database, clock } = deps;
  const { zoneId, to } = backfill;
  const known = await readCoverageHours(database.db, zoneId, { from: startOfHour(backfill.doneThrough), to });
  const stored = new Map(known.map(({ startsAt, storedCount }) => [startsAt, storedCount]));
  const expired: Expired[] = [];
  for (let at = backfill.doneThrough; at < to; ) {
    signal.throwIfAborted();
    const hour = startOfHour(at);
    const end = Math.min(hour + HOUR_MS, to);
    const from = Math.max(at, horizonAt(clock()));
    if (from > at) expired.push({ from: at, to: Math.min(from, end) });
    const isWhole = backfill.from <= hour && from === at;
    const startedAt = clock();
    const isClosing =
      isProof && from <= hour && isClosingSearch({ hour, from, to: end }, startedAt, SETTLE_MS);
    const onPage: HourToRead["onPage"] = (tx, { inserted }) =>
      advanceBackfill(tx, backfill, { through: null, newEvents: inserted });
    const conclude: HourToRead["conclude"] = async (tx, through) => {
      await advanceBackfill(tx, backfill, { through, newEvents: 0 });
      const closingSearchAt = isClosing && through === end ? startedAt : null;
      if (isWhole)
        await advanceSearch(tx, zoneId, { startsAt: hour, searchedThrough: through, closingSearchAt });
    };
    if (from < end)
      await readHour({ from, to: end, isFirst: (stored.get(hour) ?? 0) === 0, onPage, conclude });
    at = end;
  }
  return expired;
}
