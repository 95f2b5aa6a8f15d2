/** Publishes the files of a day, while the day is locked. */

import {
  ArchiveMismatchError,
  addSums,
  countHours,
  countRules,
  statementPath,
  toProvisional,
  toStatedFile,
  writeStatement,
} from "#archive/rules/files/day-statement.ts";
import { listValidFiles, type ManifestRow, type NewArchiveFile } from "#db/archive/archive-files.ts";
import {
  type EventSum,
  measureEventsFile,
  type RecordSum,
  sumEventsFile,
  sumRecordsFile,
} from "#db/archive/day-files.ts";
import { lockArchiveDay, type ZoneDay } from "#db/archive/day-source.ts";
import { readDayEvidence } from "#db/archive/days-to-archive.ts";
import type { Database, Queryable } from "#db/client.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { hashFile } from "#lib/files.ts";
import { ARCHIVE_FORMAT, archivePath } from "#model/archive-layout.ts";
import type { ArchiveKind } from "#model/kinds.ts";
import { type ArchiveStore, inWorkFolder } from "./archive-store.ts";

export interface VerifiedDay extends ZoneDay {
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
