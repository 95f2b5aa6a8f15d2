import { createWriteStream } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ZoneDay } from "#db/archive/day-source.ts";
import { type FactSource, readFactSources, rewriteFacts } from "#db/archive/rewrite-files.ts";
import type { Database } from "#db/client.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { readRequest, toFactColumns } from "#model/request-facts.ts";
import { ArchiveMismatchError } from "#stages/archive/files/archive-mismatch-error.ts";
import { ERASED, isPseudonym } from "#stages/privacy/pseudonym.ts";
import { readHashKey } from "../ingest/hash-key.ts";

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
export async function writeFacts(wanted: FactsToWrite): Promise<{ file: string; records: number }> {
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
