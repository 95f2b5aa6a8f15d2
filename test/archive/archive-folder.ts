import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import type { ArchiveDamagedError } from "../../db/archive/archive-damaged-error.ts";
import { type ArchiveReader, createArchiveReader } from "../../db/archive/archive-reader.ts";
import type { Database } from "../../db/client.ts";
import { createDuckdb, type Duckdb } from "../../db/duckdb/duckdb.ts";
import { readRecords } from "../../src/operations/search/read-records.ts";
import { createOpenedBlocks } from "../../src/archive/records/opened-blocks.ts";
import { listDay } from "../../src/operations/search/list-day.ts";
import { type ArchiveKind, archivePath, EVENT_FILE_COLUMNS } from "../../src/model/archive-layout.ts";
import { DAY_MS } from "../../src/lib/units.ts";

export interface ArchiveFolder {
  readonly folder: string;
  readonly duckdb: Duckdb;
  readonly files: ArchiveReader;
  /** The files that were found missing or damaged. */
  readonly damaged: ArchiveDamagedError[];
  close(): Promise<void>;
}

/** A folder for archive files, and a DuckDB that may read and write there. */
export async function openFolder(): Promise<ArchiveFolder> {
  const folder = await mkdtemp(path.join(tmpdir(), "longwatch-archive-"));
  const scratch = path.join(folder, "scratch");
  await mkdir(scratch);
  const duckdb = createDuckdb({
    folders: [folder],
    spillInto: scratch,
    memoryBytes: 256_000_000,
    residentBytes: 1_000_000_000,
  });
  const damaged: ArchiveDamagedError[] = [];
  const onDamaged = (error: ArchiveDamagedError) => void damaged.push(error);
  const files = createArchiveReader({ duckdb, folder, scratch, timeoutMs: 60_000, onDamaged });
  const close = async () => {
    await duckdb.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { folder, duckdb, files, damaged, close };
}

/** As `openFolder`, for the running test. */
export async function openTestFolder(): Promise<ArchiveFolder> {
  const folder = await openFolder();
  onTestFinished(() => folder.close());
  return folder;
}

/**
 * Writes a zone's day (`yyyy-mm-dd`) into the archive, records included, and removes its events and records from Postgres
 * unless they are kept there.
 */
export async function archiveDay(
  database: Database,
  { folder, duckdb, files }: ArchiveFolder,
  day: string,
  { zoneId = 101, isKept = false } = {},
): Promise<void> {
  const from = Date.parse(`${day}T00:00:00Z`);
  const deps = { archive: database, files, openedBlocks: createOpenedBlocks(10_000_000) };
  const { signal } = new AbortController();
  const events = await listDay(deps, zoneId, { from, after: null, limit: 1_000_000 }, signal);
  const records = await readRecords(deps, zoneId, events, signal);
  const source = path.join(folder, "day.csv");
  const client = await database.pool.connect();
  const { to: copyTo } = await import("pg-copy-streams");
  const { pipeline } = await import("node:stream/promises");
  const { createWriteStream } = await import("node:fs");
  const columns = EVENT_FILE_COLUMNS.map(({ name }) => name);
  try {
    await pipeline(
      client.query(
        copyTo(`copy (select ${columns.join(", ")} from waf_events where zone_id = ${zoneId} and occurred_at >= '${day}T00:00:00Z'
          and occurred_at < '${new Date(from + DAY_MS).toISOString()}' order by occurred_at, log_id) to stdout (format csv)`),
      ),
      createWriteStream(source),
    );
  } finally {
    client.release();
  }
  const types = EVENT_FILE_COLUMNS.map(({ name, type }) => `'${name}': '${type}'`).join(", ");
  const write = (file: string, select: string) => ({ sql: `copy (${select}) to '${file}' (format parquet, compression zstd)` });
  const temporary = { events: path.join(folder, "events.tmp"), records: path.join(folder, "records.tmp") };
  await duckdb.run([
    write(
      temporary.events,
      `select * from read_csv('${source}', auto_detect = false, header = false, delim = ',', quote = '"', escape = '"',
        nullstr = '', allow_quoted_nulls = false, parallel = false, columns = {${types}})`,
    ),
    { sql: "create temp table records (n integer, record blob)" },
    ...records.map((record, row) => ({
      sql: "insert into records values ($1::integer, from_base64($2))",
      values: [String(row), record === undefined ? null : record.toString("base64")],
    })),
    write(temporary.records, "select record from records order by n"),
  ]);
  const hours = Array.from({ length: 24 }, (_, hour) => events.filter((e) => new Date(e.occurredAt).getUTCHours() === hour).length);
  const publish = async (kind: ArchiveKind) => {
    const bytes = await readFile(temporary[kind]);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const place = archivePath(kind, zoneId, day, sha256);
    await mkdir(path.dirname(path.join(folder, place)), { recursive: true });
    await rename(temporary[kind], path.join(folder, place));
    return [zoneId, day, kind, sha256, place, bytes.length, events.length, hours, events[0]?.occurredAt ?? null, events.at(-1)?.occurredAt ?? null];
  };
  const rows = [await publish("events"), await publish("records")];
  const writer = await database.pool.connect();
  try {
    await writer.query("begin");
    for (const row of rows) {
      await writer.query(
        `insert into archive_files (zone_id, day, kind, sha256, path, bytes, rows, hours, first_at, last_at, format, sum)
         values ($1, $2, $3, $4, $5, $6, $7, $8, to_timestamp($9::float8 / 1000), to_timestamp($10::float8 / 1000), 1, 0)`,
        row,
      );
    }
    if (!isKept) {
      await writer.query(`delete from waf_events where zone_id = $1 and occurred_at >= $2 and occurred_at < $3`, [
        zoneId,
        new Date(from),
        new Date(from + DAY_MS),
      ]);
      await writer.query("delete from raw_blocks where zone_id = $1 and day = $2", [zoneId, day]);
    }
    await writer.query("commit");
  } finally {
    writer.release(true);
  }
}
