import { readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { readFile } from "#db/archive/day-files.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import { SEARCH_COLUMNS } from "#model/fields.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey, type WafEvent } from "#model/waf-event.ts";
import type { Bucket } from "#store/bucket/bucket.ts";
import { createBucketStorage } from "#store/bucket/bucket-storage.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { atEnd } from "#test/support/at-end.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { rollUp } from "../../people/erasure-world.ts";
import { makeArchiveFolder, sharedDuckdb } from "../archive-folder.ts";
import { HOSTILE } from "../query/draw.ts";
import { DAY, DAY_START, NOW } from "./tested-day.ts";

export { DAY, DAY_START, NOW };
export const ZONE = 101;

/** Texts that a file could change: line ends, quotes, what CSV and COPY treat as special, and what decoders drop. */
const SPECIAL = [
  // First, because a reader of CSV may take the first line end that it finds for the file's own.
  "\rreturn\r\n",
  "",
  null,
  "\u{FEFF}begins with a byte order mark",
  "line\nline\r\nline\r",
  '"quoted", and "" doubled',
  "\\N",
  "\\.",
  "=1+1",
  "\u{1F4A9}\u{10FFFF}\u{FFFF}",
  "a\u0001\u001f\u007f\u0085\u2028",
  "x".repeat(8_192),
  "NULL",
  "null",
];

/** Events with each special text in every column, two of each, over the whole day. */
export function hostileEvents(): WafEvent[] {
  const texts = [...SPECIAL, ...HOSTILE];
  return texts.flatMap((text, index) => {
    const fields = {
      feature: text,
      ip: text,
      ja4: text,
      ua: text,
      url: text,
      asn: text,
      country: text,
      message: text,
      method: text,
      requestId: text,
      matchedKey: index % 3 === 0 ? null : index - 40,
      facts: index % 4 === 0 ? null : index,
    };
    const occurredAt = DAY_START + Math.floor((index * 86_399_999) / texts.length);
    const more = { ruleId: index % 3 === 0 ? text : "942100", action: index % 5 === 0 ? text : "block" };
    return ["b", "a"].map((prefix) =>
      makeEvent({ ...fields, ...more, occurredAt, logId: `${prefix}${text?.slice(0, 20) ?? ""}${index}` }),
    );
  });
}

/** A record for an event, with bytes that are no UTF-8. */
export function recordOf({ logId, occurredAt }: WafEvent): Buffer {
  const text = JSON.stringify({ logId, timestamp: occurredAt, log: "\u{FEFF}x" });
  return Buffer.concat([Buffer.from(text), Buffer.from([0, 0xff, 0xfe, 0xc3, 0x28])]);
}

export interface ArchiveWorld {
  readonly database: MigratedDatabase;
  readonly duckdb: Duckdb;
  readonly folder: string;
  readonly storage: ArchiveStorage;
  /** Stores events of a day and their records, with the roll-up done. `records` is false for those without one. */
  store(events: readonly WafEvent[], options?: StoreOptions): Promise<void>;
}

interface StoreOptions {
  readonly zoneId?: number;
  readonly hasRecord?: (event: WafEvent, index: number) => boolean;
  /** Default: every hour of the events' days. */
  readonly isSealed?: boolean;
}

/** A database, an archive folder and a DuckDB for the running test, or for a file that opens it at its top level (see `atEnd`). */
export async function openArchiveWorld(given?: MigratedDatabase, bucket?: Bucket): Promise<ArchiveWorld> {
  const database = given ?? (await createMigratedDatabase());
  const folder = makeArchiveFolder();
  const duckdb = sharedDuckdb;
  atEnd(async () => {
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });
  const store = async (events: readonly WafEvent[], options: StoreOptions = {}) => {
    const { zoneId = ZONE, hasRecord = () => true, isSealed = true } = options;
    const days = [
      ...new Set(events.map(({ occurredAt }) => new Date(occurredAt).toISOString().slice(0, 10))),
    ];
    await ensurePartitions(database, days);
    await storeEvents(database, zoneId, events, { expectNew: false });
    const entries = events.filter(hasRecord).map((event) => ({
      occurredAt: event.occurredAt,
      logIdHash: hashEventKey(event),
      raw: recordOf(event),
    }));
    await insertRawBlocks(database.db, zoneId, await packRawBlocks(entries));
    await rollUp(database);
    if (isSealed) for (const day of days) await sealDay(database, zoneId, day);
  };
  return { database, duckdb, folder, storage: openStorage(folder, bucket), store };
}

/** The archive in a folder, or in a bucket with the folder as cache of `cacheBytes`. */
export function openStorage(folder: string, bucket?: Bucket, cacheBytes = 1e9): ArchiveStorage {
  if (bucket === undefined) return createFolderStorage(folder);
  return createBucketStorage({ bucket, folder, cacheBytes, listNotUploaded: async () => new Set() });
}

/** Every hour of the day sealed. */
async function sealDay({ pool }: MigratedDatabase, zoneId: number, day: string): Promise<void> {
  await pool.query(
    `insert into coverage_windows (zone_id, starts_at, state, sealed_at, evidence)
     select $1, hour, 'sealed', hour + interval '1 day', '{"looks": 2}'
     from generate_series($2::timestamptz, $2::timestamptz + interval '23 hours', interval '1 hour') hour
     on conflict (zone_id, starts_at) do update set state = 'sealed', sealed_at = excluded.sealed_at, evidence = excluded.evidence`,
    [zoneId, `${day}T00:00:00Z`],
  );
}

/** The texts of an event, and their columns. */
const TEXTS = {
  logId: "log_id",
  route: "route",
  ...SEARCH_COLUMNS,
  method: "method",
  requestId: "request_id",
};

/** The events of a file, every text by its bytes. */
export async function readEventsFile({ duckdb }: ArchiveWorld, file: string): Promise<WafEvent[]> {
  const columns = Object.values(TEXTS).map((name) => `encode(${name})`);
  const [rows = []] = await duckdb.run([
    {
      sql: `select epoch_ms(occurred_at), matched_key, facts, ${columns.join(", ")} from ${readFile(file)} order by file_row_number`,
    },
  ]);
  return rows.map(([at, matchedKey, facts, ...bytes]) => {
    const texts = Object.keys(TEXTS).map((name, index) => {
      const value = bytes[index] ?? null;
      return [name, value === null ? null : Buffer.from(value as Uint8Array).toString()];
    });
    return { occurredAt: Number(at), matchedKey, facts, ...Object.fromEntries(texts) } as WafEvent;
  });
}

export async function readRecordsFile({ duckdb }: ArchiveWorld, file: string): Promise<(Buffer | null)[]> {
  const [rows = []] = await duckdb.run([
    { sql: `select record from ${readFile(file)} order by file_row_number` },
  ]);
  return rows.map(([record]) => (record === null ? null : Buffer.from(record as Uint8Array)));
}

/** Ascending by time and bytes of the id, as a file has them. */
export function inFileOrder(events: readonly WafEvent[]): WafEvent[] {
  return events.toSorted(
    (one, other) =>
      one.occurredAt - other.occurredAt || Buffer.compare(Buffer.from(one.logId), Buffer.from(other.logId)),
  );
}

/** The names of all files in a folder, relative to it. */
export function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort();
}
