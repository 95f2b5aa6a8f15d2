import { rm } from "node:fs/promises";
import path from "node:path";
import { ArchiveMismatchError, compareSums, type DifferingSum } from "#archive/rules/files/day-statement.ts";
import { enterFiles, listValidFiles, type NewArchiveFile } from "#db/archive/archive-files.ts";
import {
  type EventSum,
  sumEventsFile,
  sumRecordsFile,
  writeEventsFile,
  writeRecordsFile,
} from "#db/archive/day-files.ts";
import { copyEvents, findPartitions, lockDay, sumEvents, type ZoneDay } from "#db/archive/day-source.ts";
import { hasOpenErasure, readHourCounts, recountHours } from "#db/archive/days-to-archive.ts";
import type { Database, Queryable } from "#db/client.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { inTransaction, runTransaction, type Transaction } from "#db/postgres/transaction.ts";
import { type ArchiveStore, inWorkFolder } from "./archive-store.ts";
import { type CopiedRecords, copyRecords } from "./copy-records.ts";
import { publishDay, type VerifiedDay } from "./publish-day.ts";

/** The steps of writing a day, for tests that end the process at each of them. */
export type WriteStep = "locked" | "copied" | "written" | "verified" | "published" | "entered";

export interface WriteDayDeps extends ArchiveStore {
  readonly database: Database;
  /** Runs in the transaction after the manifest's rows; fails it if another process has taken over. */
  readonly conclude?: (tx: Queryable) => Promise<void>;
  readonly onStep?: (step: WriteStep) => unknown;
  readonly signal?: AbortSignal;
}

export type WrittenDay =
  | { readonly outcome: "written"; readonly files: readonly NewArchiveFile[]; readonly withoutEvent: number }
  /** The roll-up had counted something else. Its minutes are marked; the next attempt finds them counted anew. */
  | { readonly outcome: "counts-differ"; readonly differing: readonly DifferingSum[] }
  /** The zone's day is already archived, or Postgres has no partition for it. */
  | { readonly outcome: "nothing-to-do" };

/**
 * Writes one zone's day into the archive: files under temporary names, verified against Postgres, renamed, and entered
 * into the manifest in the transaction that kept the day from changing all the while. A process that ends anywhere has
 * changed nothing but files that no manifest row names.
 */
export async function writeDay(deps: WriteDayDeps, zoneDay: ZoneDay): Promise<WrittenDay> {
  return inTransaction(deps.database, (transaction) =>
    inWorkFolder(deps.storage, zoneDay, (work) => writeLocked(deps, transaction, zoneDay, work)),
  );
}

async function writeLocked(
  deps: WriteDayDeps,
  transaction: Transaction,
  zoneDay: ZoneDay,
  work: string,
): Promise<WrittenDay> {
  const { tx } = transaction;
  const { zoneId, day } = zoneDay;
  if (!(await lockDay(tx, day)) || (await listValidFiles(tx, { zoneId, day })).length > 0)
    return { outcome: "nothing-to-do" };
  // An erasure that begins from now on waits for this transaction before it looks for the day's files.
  if (await hasOpenErasure(tx, zoneDay)) return { outcome: "nothing-to-do" };
  await deps.onStep?.("locked");
  const sums = await sumEvents(tx, zoneDay);
  const differing = compareSums(await readHourCounts(tx, zoneDay), sums);
  if (differing.length > 0) {
    await recountHours(tx, zoneDay, differing);
    return { outcome: "counts-differ", differing };
  }
  const verified = await writeVerified(deps, transaction, zoneDay, { work, sums });
  const files = await publishDay(tx, deps, verified);
  await deps.onStep?.("published");

  await enterFiles(tx, files);
  await deps.conclude?.(tx);
  await deps.onStep?.("entered");
  return { outcome: "written", files, withoutEvent: verified.recordsWithoutEvent };
}

/**
 * Writes a zone's day as Postgres has it now into a store of its own, with a statement that says which hours are proven. The
 * day may change later, and ingest goes on. Returns the files; null if Postgres has no partition of the day.
 * @throws {Error} while an erasure that covers the day is in progress.
 */
export function copyOpenDay(
  deps: WriteDayDeps,
  zoneDay: ZoneDay,
  copiedAt: number,
): Promise<NewArchiveFile[] | null> {
  return runTransaction(
    deps.database,
    async (transaction) => {
      const { tx } = transaction;
      await tx.execute("set local statement_timeout = 0");
      await tx.execute("set local idle_in_transaction_session_timeout = 0");
      if ((await findPartitions(tx, zoneDay.day)).length === 0) return null;
      if (await hasOpenErasure(tx, zoneDay))
        throw new Error(
          `an erasure of ${zoneDay.day} is in progress; run the command again when it has ended`,
        );
      return inWorkFolder(deps.storage, zoneDay, async (work) => {
        const sums = await sumEvents(tx, zoneDay);
        const verified = await writeVerified(deps, transaction, zoneDay, { work, sums });
        return publishDay(tx, deps, { ...verified, copiedAt });
      });
    },
    { isolationLevel: "repeatable read", accessMode: "read only" },
  );
}

/** Writes the day's files under temporary names and compares them with Postgres. */
async function writeVerified(
  deps: WriteDayDeps,
  transaction: Transaction,
  zoneDay: ZoneDay,
  { work, sums }: { readonly work: string; readonly sums: readonly EventSum[] },
): Promise<VerifiedDay> {
  const csv = path.join(work, "events.csv");
  const rows = await copyEvents(transaction.client, zoneDay, csv);
  const copied = await copyRecords(transaction, zoneDay, { rows, folder: work });
  await deps.onStep?.("copied");
  deps.signal?.throwIfAborted();

  const [events, records] = [path.join(work, "events.parquet"), path.join(work, "records.parquet")];
  const run = { signal: deps.signal };
  await deps.duckdb.run([writeEventsFile(csv, events, zoneDay, rows)], run);
  await rm(csv);
  if (copied.records > 0) await deps.duckdb.run(writeRecordsFile(copied, records, zoneDay, rows), run);
  for (const part of copied.parts.values()) await rm(part);
  await deps.onStep?.("written");

  await verifyEvents(deps.duckdb, events, sums);
  if (copied.records > 0) await verifyRecords(deps.duckdb, records, copied);
  await deps.onStep?.("verified");

  return {
    ...zoneDay,
    events,
    records: copied.records > 0 ? records : null,
    sums,
    recordSum: copied,
    recordsWithoutEvent: copied.unmatched,
    signal: deps.signal,
  };
}

async function verifyEvents(duckdb: Duckdb, file: string, expected: readonly EventSum[]): Promise<void> {
  const [different] = compareSums(expected, await sumEventsFile(duckdb, file));
  if (different !== undefined) {
    const { hour, ruleId, one, other } = different;
    throw new ArchiveMismatchError(
      `the events file differs from Postgres in hour ${hour}, rule ${JSON.stringify(ruleId)}: ${one} events in Postgres, ${other} in the file`,
    );
  }
}

async function verifyRecords(duckdb: Duckdb, file: string, expected: CopiedRecords): Promise<void> {
  const { rows, records, sum } = await sumRecordsFile(duckdb, file);
  if (rows !== expected.rows || records !== expected.records || sum !== expected.sum)
    throw new ArchiveMismatchError(
      `the records file has ${records} records in ${rows} rows, not the ${expected.records} of Postgres in ${expected.rows}`,
    );
}
