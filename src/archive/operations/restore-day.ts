/** Restores a day of the archive, or rewrites its files. */
import path from "node:path";
import { listValidFiles, type ManifestRow, retireFiles } from "#db/archive/archive-files.ts";
import { locateFile } from "#db/archive/bring-file.ts";
import { lockArchiveDay, type ZoneDay } from "#db/archive/day-source.ts";
import { isDayStored } from "#db/archive/hot-days.ts";
import { insertEvents, readFileRecords, writeEventsCsv } from "#db/archive/read-files.ts";
import type { Database } from "#db/client.ts";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { inTransaction, type Transaction } from "#db/postgres/transaction.ts";
import { type ArchiveStore, inWorkFolder } from "#jobs/archive/archive-store.ts";
import { type AddFactsDeps, addFacts } from "#jobs/archive/rewrite-day.ts";
import { toError } from "#lib/errors.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey } from "#model/waf-event.ts";

/** The steps of restoring a day, for tests that end the process at each of them. */
export type RestoreStep = "locked" | "events copied" | "records copied" | "retired";

interface RestoreDayDeps {
  readonly database: Database;
  readonly archive: ArchiveStore;
  readonly onStep?: (step: RestoreStep) => unknown;
}

interface RestoredDay {
  readonly events: number;
  readonly records: number;
  /** True if Postgres still had the day, so that nothing was copied. */
  readonly wasStored: boolean;
}

/**
 * Brings an archive day back into Postgres, after a check of its files. From the commit on searches read Postgres; the
 * files are retired. archive-days writes the day again later.
 * @throws {Error} if the zone has no such archive day, or a file is damaged.
 */
export async function restoreDay(
  deps: RestoreDayDeps,
  zoneDay: ZoneDay,
  onProgress: (share: number) => void,
): Promise<RestoredDay> {
  const { zoneId, day } = zoneDay;
  const { database } = deps;
  const { storage } = deps.archive;
  await ensurePartitions(database, [day]);
  return inWorkFolder(storage, zoneDay, (work) =>
    inTransaction(database, async ({ tx, client }) => {
      await tx.execute("set local statement_timeout = 0");
      await tx.execute("set local idle_in_transaction_session_timeout = 0");
      await lockArchiveDay(tx, day);
      const files = await listValidFiles(tx, { zoneId, day });
      const release = storage.hold(files);
      try {
        return await restoreFiles({ ...deps, onProgress, work, tx, client }, zoneDay, files);
      } finally {
        release();
      }
    }),
  );
}

interface Restoring extends RestoreDayDeps, Transaction {
  readonly onProgress: (share: number) => void;
  readonly work: string;
}

async function restoreFiles(
  { archive: { storage, duckdb }, tx, client, work, onStep, onProgress }: Restoring,
  zoneDay: ZoneDay,
  files: readonly ManifestRow[],
): Promise<RestoredDay> {
  const { zoneId, day } = zoneDay;
  const events = files.find(({ kind }) => kind === "events");
  if (events === undefined)
    throw new Error(`${day} is not an archive day of zone ${zoneId}; see longwatch archive status`);
  for (const file of files) {
    const wrong = await storage.bring(file);
    if (wrong !== null) throw new Error(`the archive file ${file.path} ${wrong}; nothing was restored`);
  }
  await onStep?.("locked");
  const wasStored = await isDayStored(tx, zoneDay);
  let count = 0;
  if (!wasStored) {
    const csv = path.join(work, "events.csv");
    const file = locateFile(storage, events);
    await writeEventsCsv(duckdb, { file, format: events.format }, csv);
    await insertEvents(client, csv);
    await onStep?.("events copied");
    const records = files.find(({ kind }) => kind === "records");
    const names = { events: file, records: locateFile(storage, records ?? events) };
    for await (const some of records === undefined ? [] : readFileRecords(duckdb, names, events.rows)) {
      const entries = some.map(({ record: raw, ...key }) => ({ ...key, raw, logIdHash: hashEventKey(key) }));
      await insertRawBlocks(tx, zoneId, await packRawBlocks(entries));
      count += some.length;
      onProgress(count / events.rows);
    }
    await onStep?.("records copied");
  }
  for (const { kind } of files) await retireFiles(tx, { zoneId, day, kind });
  await onStep?.("retired");
  return { events: events.rows, records: count, wasStored };
}

interface RewriteScope {
  /** Null: every zone. */
  readonly zoneId: number | null;
  /** `yyyy-mm-dd`: only this day, also if its files are of the current version. Null: every day of an earlier version. */
  readonly day: string | null;
  /** Called before each day with the number of days before it and of all days. */
  readonly onDay: (day: ZoneDay, done: number, all: number) => void;
  /** Called for each day that stays as it is. */
  readonly onFailure: (day: ZoneDay, failure: Error) => void;
}

interface RewrittenArchive {
  readonly days: number;
  readonly events: number;
  /** Events with a record. The facts of others are known only as far as their columns say. */
  readonly records: number;
  readonly failed: number;
}

/**
 * Writes the archive days of earlier versions anew, oldest first, one after the other. Each day is complete before the next one
 * begins, so a run that was stopped goes on with the days that are left. A day that fails does not keep the others waiting.
 */
export async function rewriteArchive(
  deps: AddFactsDeps & { readonly signal: AbortSignal },
  { zoneId, day, onDay, onFailure }: RewriteScope,
): Promise<RewrittenArchive> {
  const scope = { zoneId, kind: "events" as const, ...(day === null ? {} : { day }) };
  const files = await listValidFiles(deps.database.db, scope);
  const due = files.filter(({ format }) => day !== null || format < ARCHIVE_FORMAT);
  if (day !== null && due.length === 0)
    throw new Error(
      `${day} is not an archive day${zoneId === null ? "" : ` of zone ${zoneId}`}; see longwatch archive status`,
    );
  const rewritten = { days: 0, events: 0, records: 0, failed: 0 };
  for (const [index, file] of due.entries()) {
    deps.signal.throwIfAborted();
    const zoneDay = { zoneId: file.zoneId, day: file.day };
    onDay(zoneDay, index, due.length);
    try {
      const added = await addFacts(deps, zoneDay, { isForced: day !== null });
      if (added === null) continue;
      rewritten.days += 1;
      rewritten.events += added.events;
      rewritten.records += added.records;
    } catch (thrown) {
      deps.signal.throwIfAborted();
      rewritten.failed += 1;
      onFailure(zoneDay, toError(thrown));
    }
  }
  return rewritten;
}
