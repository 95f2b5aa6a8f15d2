/** Rewrites the files of a day. */

import { createWriteStream } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  ArchiveMismatchError,
  compareSums,
  readStatement,
  statementPath,
} from "#archive/rules/files/day-statement.ts";
import { enterFiles, type ManifestRow } from "#db/archive/archive-files.ts";
import { bringFile } from "#db/archive/bring-file.ts";
import type { ZoneDay } from "#db/archive/day-source.ts";
import {
  countFileAddresses,
  type FactSource,
  findChangedIds,
  hasRequestIds,
  type Replacements,
  readChangedRecords,
  readFactSources,
  rewriteEvents,
  rewriteFacts,
  rewriteRecords,
} from "#db/archive/rewrite-files.ts";
import type { Database, Queryable } from "#db/client.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { readHashKey } from "#db/health/server-facts.ts";
import { forgetValues, listRevisedIds } from "#db/ingest/event-revisions.ts";
import { DAY_MS } from "#lib/units.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import type { ArchiveKind } from "#model/kinds.ts";
import { readRequest, toFactColumns } from "#model/request-facts.ts";
import { eraseRecord } from "#people/rules/erasure-guard.ts";
import { ERASED, isPseudonym } from "#people/rules/pseudonym.ts";
import type { ArchiveStore } from "./archive-store.ts";
import { type PlacedRecord, writeRecordsCsv } from "./copy-records.ts";
import { inLockedDay, type LockedDay, publishDay, sumFiles } from "./write-day.ts";

/** The steps of rewriting a day, for tests that end the process at each of them. */
export type RewriteStep = "locked" | "written" | "published" | "entered";

interface RewriteDayDeps {
  readonly database: Database;
  readonly archive: ArchiveStore;
  readonly onStep?: (step: RewriteStep) => unknown;
  readonly signal?: AbortSignal;
}

interface DayChange {
  /** Returns what an address becomes; null if it stays. */
  readonly replace: (ip: string) => string | null;
  /** Events up to here change; epoch ms. */
  readonly untilAt: number;
  /** Whether the events' other texts and their records are emptied, and their former values deleted. */
  readonly isErasure: boolean;
  /** Runs in the transaction that makes the new files valid. */
  readonly conclude?: (tx: Queryable, changed: Rewritten) => Promise<void>;
}

interface Rewritten {
  readonly events: number;
  readonly records: number;
}

/**
 * Replaces addresses in the files of an archive day; without an erasure, also drops the ids of requests. A file of an earlier
 * version gets its facts on the way. The new files become valid in one transaction; the old ones are retired and deleted when no
 * search can read them any more. Writes nothing if nothing changes, so a second call costs little. Everything that does not
 * change is compared. No other process changes the day meanwhile.
 */
export async function rewriteDay(
  deps: RewriteDayDeps,
  zoneDay: ZoneDay,
  change: DayChange,
): Promise<Rewritten> {
  return inLockedDay(deps, zoneDay, (locked) => rewriteFiles(deps, locked, zoneDay, change));
}

async function rewriteFiles(
  { database, archive, signal, onStep }: RewriteDayDeps,
  { tx, work, files }: LockedDay,
  zoneDay: ZoneDay,
  change: DayChange,
): Promise<Rewritten> {
  const { storage, duckdb } = archive;
  const bring = async (kind: ArchiveKind) => {
    const file = files.find((one) => one.kind === kind);
    return file === undefined ? null : bringFile(storage, file, signal);
  };
  const file = files.find(({ kind }) => kind === "events");
  const oldEvents = await bring("events");
  if (file === undefined || oldEvents === null) return NOTHING;
  const { rows, format } = file;
  const addresses = new Map<string, string>();
  for (const { ip } of await countFileAddresses(duckdb, oldEvents, change.untilAt)) {
    const by = change.replace(ip);
    if (by !== null && by !== ip) addresses.set(ip, by);
  }
  const isOld = format < ARCHIVE_FORMAT;
  const dropsRequestIds = !change.isErasure;
  const hasIds = dropsRequestIds && !isOld && (await hasRequestIds(duckdb, oldEvents, change.untilAt));
  if (addresses.size === 0 && !hasIds) return NOTHING;
  const oldRecords = await bring("records");
  await onStep?.("locked");
  const changes: Replacements = { ...change, addresses, dropsRequestIds };

  const old = {
    database,
    duckdb,
    zoneDay,
    events: oldEvents,
    records: oldRecords,
    rows,
    format,
    work,
    signal,
  };
  const from = isOld ? (await writeFacts(old)).file : oldEvents;
  const events = path.join(work, "events.parquet");
  const { changed, isIntact } = await rewriteEvents(duckdb, { from, to: events, rows }, zoneDay, changes);
  assertIntact(isIntact, "events");
  let [records, emptied] = [oldRecords, 0];
  if (change.isErasure && oldRecords !== null) {
    const both = { events: oldEvents, records: oldRecords };
    const erased = eraseEach(readChangedRecords(duckdb, both, changes));
    const csv = await writeRecordsCsv(work, erased);
    emptied = csv.records;
    if (emptied > 0) {
      records = path.join(work, "records.parquet");
      assertIntact(
        await rewriteRecords(duckdb, { from: oldRecords, to: records, csv, rows }, zoneDay),
        "records",
      );
    }
  }
  const sums = await sumFiles(duckdb, events, { records });
  assertSameCounts(await sumFiles(duckdb, oldEvents, { records: null, format }), sums);
  signal?.throwIfAborted();
  await onStep?.("written");
  // Unchanged records keep their file, so only their row of the manifest is written again.
  const isSame = records !== null && records === oldRecords;
  const published = await publishDay(tx, archive, {
    ...zoneDay,
    ...sums,
    events,
    records,
    recordsWithoutEvent: await readRecordsWithoutEvent(storage, zoneDay),
    signal,
  });
  await onStep?.("published");
  await enterFiles(tx, isSame ? published.filter(({ kind }) => kind === "events") : published);
  if (change.isErasure) {
    const span = { firstAt: Date.parse(zoneDay.day), lastAt: Date.parse(zoneDay.day) + DAY_MS };
    const revised = await listRevisedIds(tx, zoneDay.zoneId, span);
    const logIds = revised.length === 0 ? [] : await findChangedIds(duckdb, oldEvents, changes, revised);
    if (logIds.length > 0) await forgetValues(tx, zoneDay.zoneId, { ...span, logIds });
  }
  const rewritten = { events: changed, records: emptied };
  await change.conclude?.(tx, rewritten);
  await onStep?.("entered");
  return rewritten;
}

const NOTHING: Rewritten = { events: 0, records: 0 };

type Sums = Awaited<ReturnType<typeof sumFiles>>;

/** @throws {ArchiveMismatchError} if two files differ in the number of events of a rule in an hour. */
function assertSameCounts(before: Sums, after: Sums): void {
  const [one, other] = [before, after].map(({ sums }) =>
    sums.map(({ hour, ruleId, events }) => ({ hour, ruleId, events })),
  );
  assertIntact(compareSums(one ?? [], other ?? []).length === 0, "counts");
}

function assertIntact(isIntact: boolean, what: string): void {
  if (!isIntact)
    throw new ArchiveMismatchError(`a rewritten day would have lost other ${what}; nothing was changed`);
}

async function* eraseEach(found: AsyncIterable<readonly PlacedRecord[]>) {
  for await (const records of found)
    yield records.map(({ row, record }) => ({ row, record: eraseRecord(record) }));
}

/** Returns the number of a day's records without an event, which its statement has. */
async function readRecordsWithoutEvent(storage: ArchiveStorage, { zoneId, day }: ZoneDay): Promise<number> {
  return readStatement(await storage.readText(statementPath(zoneId, day)))?.recordsWithoutEvent ?? 0;
}

interface FactsToWrite {
  readonly database: Database;
  readonly duckdb: Duckdb;
  readonly zoneDay: ZoneDay;
  /** The day's files, complete and compared with their hashes. */
  readonly events: string;
  readonly records: string | null;
  /** Rows and version of the events file. */
  readonly rows: number;
  readonly format: number;
  /** A folder for new files. */
  readonly work: string;
  readonly signal: AbortSignal | undefined;
}

/**
 * Writes a copy of an events file in the current version, with the facts of requests from the day's records. A fact that the file
 * has stays. Returns the copy, and how many events have a record.
 * @throws {ArchiveMismatchError} if anything else would change.
 */
async function writeFacts(wanted: FactsToWrite): Promise<{ file: string; records: number }> {
  const { database, duckdb, zoneDay, events, records, rows, format, work, signal } = wanted;
  const hashKey = await readHashKey(database);
  let found = 0;
  const toLines = async function* () {
    for await (const sources of readFactSources(duckdb, { events, records }, rows, signal)) {
      found += sources.filter(({ record }) => record.length > 0).length;
      yield sources.map((source) => toLine(source, hashKey)).join("");
    }
  };
  const csv = path.join(work, "facts.csv");
  await pipeline(Readable.from(toLines()), createWriteStream(csv));
  const file = path.join(work, "facts.parquet");
  if (!(await rewriteFacts(duckdb, { from: events, format, to: file, rows, csv }, zoneDay)))
    throw new ArchiveMismatchError("a day with facts would have lost other values; nothing was changed");
  return { file, records: found };
}

/** Nothing that leads to a person is added to an event whose person was erased or has a pseudonym. */
function toLine({ row, ip, url, ua, ruleId, record }: FactSource, hashKey: string): string {
  const read = readRequest(record, { url, ua, ruleId }, hashKey);
  const { method, requestId, matchedKey, facts } = toFactColumns(read);
  const isErased = ip === ERASED;
  const id = isErased || isPseudonym(ip) ? null : requestId;
  const key = isErased ? null : matchedKey;
  return `${row},${toCell(method)},${toCell(id)},${key ?? ""},${facts ?? ""}\n`;
}

function toCell(text: string | null): string {
  return text === null ? "" : `"${text.replaceAll('"', '""')}"`;
}

/** The steps of adding facts to a day, for tests that end the process at each of them. */
export type AddFactsStep = "locked" | "written" | "published" | "entered";

export interface AddFactsDeps {
  readonly database: Database;
  readonly archive: ArchiveStore;
  readonly onStep?: (step: AddFactsStep) => unknown;
  readonly signal?: AbortSignal;
}

export interface AddedFacts {
  readonly events: number;
  /** Events with a record. */
  readonly records: number;
}

/**
 * Writes the events file of an archive day anew in the current version, with the facts of requests from the day's records.
 * Returns null and writes nothing if the day is not in the archive, or if its file is of the current version and `isForced` is
 * false. A process that ends anywhere has changed nothing but files that no manifest row names.
 */
export function addFacts(
  deps: AddFactsDeps,
  zoneDay: ZoneDay,
  { isForced = false } = {},
): Promise<AddedFacts | null> {
  return inLockedDay(deps, zoneDay, async (locked) => {
    const file = locked.files.find(({ kind }) => kind === "events");
    if (file === undefined || (file.format >= ARCHIVE_FORMAT && !isForced)) return null;
    return addLocked(deps, locked, zoneDay, file);
  });
}

async function addLocked(
  { database, archive, signal, onStep }: AddFactsDeps,
  { tx, work, files }: LockedDay,
  zoneDay: ZoneDay,
  events: ManifestRow,
): Promise<AddedFacts> {
  const { storage, duckdb } = archive;
  const bring = async (kind: ArchiveKind) => {
    const file = files.find((one) => one.kind === kind);
    return file === undefined ? null : bringFile(storage, file, signal);
  };
  const { rows, format } = events;
  const [before, records] = [await bringFile(storage, events, signal), await bring("records")];
  await onStep?.("locked");
  const wanted = { database, duckdb, zoneDay, events: before, records, rows, format, work, signal };
  const added = await writeFacts(wanted);
  const sums = await sumFiles(duckdb, added.file, { records });
  assertSameCounts(await sumFiles(duckdb, before, { records: null, format }), sums);
  signal?.throwIfAborted();
  await onStep?.("written");
  const published = await publishDay(tx, archive, {
    ...zoneDay,
    ...sums,
    events: added.file,
    records,
    recordsWithoutEvent: await readRecordsWithoutEvent(storage, zoneDay),
    signal,
  });
  await onStep?.("published");
  // The records keep their file.
  await enterFiles(
    tx,
    published.filter(({ kind }) => kind === "events"),
  );
  await onStep?.("entered");
  return { events: rows, records: added.records };
}
