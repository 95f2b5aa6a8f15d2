import { EventRow } from "#adapters/edge/contract/event-logs.ts";
import { readHashKey } from "#jobs/ingest/hash-key.ts";
import { storeEntries } from "#jobs/ingest/store-entries.ts";
import { readBy, readPage } from "#stages/ingest/read-page.ts";
import type { BackfillDeps, Expired, RunningBackfill } from "./backfill-deps.ts";
import { BackfillError } from "./backfill-error.ts";
import { backfillHours, type HourToRead } from "./backfill-hours.ts";
import { type ExportColumns, readExportHeader, toExportEntry, toExportEvent } from "./export-columns.ts";
import { type CsvRecord, readCsv } from "./read-csv.ts";

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
