import { rm } from "node:fs/promises";
import path from "node:path";
import {
  ArchiveMismatchError,
  addSums,
  compareSums,
  countHours,
  countRules,
  type DifferingSum,
  statementPath,
  toProvisional,
  toStatedFile,
  writeStatement,
} from "#archive/rules/files/day-statement.ts";
import {
  enterFiles,
  listValidFiles,
  type ManifestRow,
  type NewArchiveFile,
} from "#db/archive/archive-files.ts";
import {
  type EventSum,
  measureEventsFile,
  type RecordSum,
  sumEventsFile,
  sumRecordsFile,
  writeEventsFile,
  writeRecordsFile,
} from "#db/archive/day-files.ts";
import {
  copyEvents,
  findPartitions,
  lockArchiveDay,
  lockDay,
  sumEvents,
  type ZoneDay,
} from "#db/archive/day-source.ts";
import {
  hasOpenErasure,
  readDayEvidence,
  readHourCounts,
  recountHours,
} from "#db/archive/days-to-archive.ts";
import type { Database, Queryable } from "#db/client.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { inTransaction, runTransaction, type Transaction } from "#db/postgres/transaction.ts";
import { hashFile } from "#lib/files.ts";
import { ARCHIVE_FORMAT, archivePath } from "#model/archive-layout.ts";
import type { ArchiveKind } from "#model/kinds.ts";
import { type ArchiveStore, inWorkFolder } from "./archive-store.ts";
import { type CopiedRecords, copyRecords } from "./copy-records.ts";

interface VerifiedDay extends ZoneDay {
  /** Complete files under temporary names. */
  readonly events: string;
  readonly records: string | null;
  readonly sums: readonly EventSum[];
  readonly recordSum: RecordSum;
  readonly recordsWithoutEvent: number;
  readonly signal: AbortSignal | undefined;
  /** Epoch ms; of a copy of a day that may still change. */
  readonly copiedAt?: number;
}

/**
 * Gives the verified files of a day their names and writes the day's statement. Nothing is visible to a search before the
 * returned files are entered into the manifest.
 */
export async function publishDay(
  tx: Queryable,
  { storage, duckdb }: ArchiveStore,
  verified: VerifiedDay,
): Promise<NewArchiveFile[]> {
  const { zoneId, day, sums, recordSum, signal } = verified;
  const { rows, firstAt, lastAt, isOrdered } = await measureEventsFile(duckdb, verified.events);
  if (!isOrdered) throw new ArchiveMismatchError("the events file is not in the order of time and log id");
  const described = { zoneId, day, rows, firstAt, lastAt, hours: countHours(sums), format: ARCHIVE_FORMAT };
  const publish = async (kind: ArchiveKind, file: string, sum: bigint): Promise<NewArchiveFile> => {
    const hash = await hashFile(file, signal);
    const name = archivePath(kind, zoneId, day, hash.sha256);
    await storage.put(file, name, hash, signal);
    return { ...described, ...hash, kind, path: name, sum, isUploaded: storage.isBucket };
  };
  const files = [await publish("events", verified.events, addSums(sums))];
  if (verified.records !== null) files.push(await publish("records", verified.records, recordSum.sum));
  const coverage = await readDayEvidence(tx, { zoneId, day });
  const { copiedAt } = verified;
  const statement = writeStatement({
    format: ARCHIVE_FORMAT,
    zoneId,
    day,
    files: files.map(toStatedFile),
    eventsPerHour: countHours(sums),
    eventsPerRule: countRules(sums),
    records: recordSum.records,
    recordsWithoutEvent: verified.recordsWithoutEvent,
    coverage,
    ...(copiedAt === undefined ? {} : { provisional: toProvisional(coverage, copiedAt) }),
  });
  await storage.writeText(statementPath(zoneId, day), statement);
  return files;
}

/**
 * Returns the sums of an events file of a version and of a records file. Without a records file there are no records.
 */
export async function sumFiles(
  duckdb: Duckdb,
  events: string,
  { records, format }: { records: string | null; format?: number },
) {
  return {
    sums: await sumEventsFile(duckdb, events, format),
    recordSum: records === null ? NO_RECORDS : await sumRecordsFile(duckdb, records),
  };
}

const NO_RECORDS: RecordSum = { rows: 0, records: 0, sum: 0n };

/** An archive day that no other process changes until the transaction ends. */
export interface LockedDay {
  readonly tx: Queryable;
  /** A folder for new files. */
  readonly work: string;
  /** The valid files of the day. A bucket's cache keeps them. */
  readonly files: readonly ManifestRow[];
}

/** Runs `rewrite` in a transaction that keeps an archive day from changing. */
export function inLockedDay<T>(
  { database, archive }: { readonly database: Database; readonly archive: ArchiveStore },
  { zoneId, day }: ZoneDay,
  rewrite: (locked: LockedDay) => Promise<T>,
): Promise<T> {
  return inTransaction(database, ({ tx }) =>
    inWorkFolder(archive.storage, { zoneId, day }, async (work) => {
      await tx.execute("set local idle_in_transaction_session_timeout = 0");
      await lockArchiveDay(tx, day);
      const files = await listValidFiles(tx, { zoneId, day });
      const release = archive.storage.hold(files);
      try {
        return await rewrite({ tx, work, files });
      } finally {
        release();
      }
    }),
  );
}

/** The steps of writing a day, for tests that end the process at each of them. */
export type WriteStep = "locked" | "copied" | "written" | "verified" | "published" | "entered";

interface WriteDayDeps extends ArchiveStore {
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
