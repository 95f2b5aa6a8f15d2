/** Finds the records of events in their blocks. */

import { LRUCache } from "lru-cache";
import { isObject } from "#lib/json.ts";
import { cleanText, MAX_DIMENSION_CHARS } from "#lib/text.ts";
import { inLanes } from "#lib/waiting.ts";
import { openRawBlock } from "#model/raw-block.ts";
import { hashEventKey, hashZoneEventKey, type ZoneEventKey } from "#model/waf-event.ts";
import { type DaySpan, planSpans } from "../query/plan-search.ts";

/** Bytes per entry in `logIdHashes`. */
const HASH_BYTES = 8;
/**
 * Blocks processed in parallel. Decompression has four threads; while one block is divided into entries others are
 * being read. An opened block takes half a megabyte until its entries are copied, so there are few.
 */
const LANES = 6;

interface Directory extends BlockState {
  readonly zoneId: number;
  readonly day: string;
  readonly logIdHashes: Buffer;
}

/** Reads stored blocks. A block that is requested by id may be missing, because it was merged into others. */
interface RecordStore {
  findBlocks(spans: readonly (DaySpan & { readonly zoneId: number })[]): Promise<readonly Directory[]>;
  readBlocks(wanted: readonly Directory[]): Promise<ReadonlyMap<string, Buffer>>;
}

/**
 * Returns the records of events, byte for byte as the platform sent them, by `hashZoneEventKey`. An event without a
 * record, or with one past its retention, is missing. Opens only blocks that hold one of the records.
 */
export async function findRecords(
  store: RecordStore,
  opened: OpenedBlocks,
  keys: readonly ZoneEventKey[],
): Promise<Map<string, Buffer>> {
  const first = await readOnce(store, opened, keys);
  if (!first.wasMoved) return first.records;
  // Blocks were merged between the two queries. The second attempt finds their records in other blocks.
  return (await readOnce(store, opened, keys)).records;
}

async function readOnce(store: RecordStore, opened: OpenedBlocks, keys: readonly ZoneEventKey[]) {
  const spans = [...Map.groupBy(keys, ({ zoneId }) => zoneId)].flatMap(([zoneId, own]) =>
    planSpans(own.map(({ occurredAt }) => occurredAt)).map((span) => ({ zoneId, ...span })),
  );
  const places = placeRecords(await store.findBlocks(spans), keys);
  const missing = places.filter(({ block }) => opened.get(block) === undefined);
  const read = await store.readBlocks(missing.map(({ block }) => block));
  const records = new Map<string, Buffer>();
  let wasMoved = false;
  await inLanes(places, LANES, async ({ block, entries: wanted }) => {
    const bytes = read.get(block.blockId);
    const count = block.logIdHashes.length / HASH_BYTES;
    const entries = opened.get(block) ?? (bytes && (await opened.open(block, bytes, count)));
    if (entries === undefined) wasMoved = true;
    for (const { hash, index } of wanted) {
      const record = entries?.[index];
      // Copied, because a view would keep its whole block in memory.
      if (record !== undefined) records.set(hash, Buffer.from(record));
    }
  });
  return { records, wasMoved };
}

interface Place {
  readonly block: Directory;
  readonly entries: { readonly hash: string; readonly index: number }[];
}

/**
 * Returns which entry of which block is the record of each event. If there are several, the one in the earliest
 * block.
 */
function placeRecords(blocks: readonly Directory[], keys: readonly ZoneEventKey[]): Place[] {
  const wanted = new Set(keys.map(hashZoneEventKey));
  // Nearly every hash belongs to another event. The first half, as a number, rules it out without converting it to
  // text.
  const halves = new Set(keys.map((key) => Number.parseInt(hashEventKey(key).slice(0, 8), 16)));
  return blocks.flatMap((block) => {
    const { logIdHashes, zoneId } = block;
    const entries: { hash: string; index: number }[] = [];
    for (let at = 0; at < logIdHashes.length; at += HASH_BYTES) {
      if (!halves.has(logIdHashes.readUInt32BE(at))) continue;
      const hash = `${zoneId} ${logIdHashes.toString("hex", at, at + HASH_BYTES)}`;
      if (wanted.delete(hash)) entries.push({ hash, index: at / HASH_BYTES });
    }
    return entries.length === 0 ? [] : [{ block, entries }];
  });
}

/** The parsed parts of a record. */
interface ReadRecord {
  /** True for a row of a search, which has no labels. */
  readonly isRow: boolean;
  /** Usually JSON text; null if there is none. */
  readonly log: string | null;
  readonly labels: Record<string, unknown> | null;
}

/**
 * Reads an entry of the list (platform API spec 2.7), whose `log` is text, or a row of a search (2.4), whose `log` is
 * an object. Rows are stored for days that had left the list when they were copied. Returns null for any other
 * record.
 */
export function readRecord(record: Buffer): ReadRecord | null {
  let entry: unknown;
  try {
    entry = JSON.parse(record.toString());
  } catch {
    return null;
  }
  if (!isObject(entry)) return null;
  const { log, labels } = entry;
  const text = isObject(log) ? JSON.stringify(log) : typeof log === "string" ? log : null;
  return { isRow: isObject(entry["fields"]), log: text, labels: isObject(labels) ? labels : null };
}

/** Returns the method in an event's record; '' if there is no record, or if the record is a search's row, which has none. */
export function readMethod(record: Buffer | undefined): string {
  const method = record === undefined ? undefined : readRecord(record)?.labels?.["method"];
  return typeof method === "string" ? cleanText(method, MAX_DIMENSION_CHARS) : "";
}

export type OpenedBlocks = ReturnType<typeof createOpenedBlocks>;

/** A block and its version, because a record may be erased within its block. */
interface BlockState {
  readonly blockId: string;
  readonly version: string;
}

interface OpenedBlock {
  readonly version: string;
  readonly entries: readonly Buffer[];
}

const DEFAULT_BYTES = 33_554_432;

/**
 * Returns a cache of opened blocks, limited in bytes, that keeps the most recently used ones: a reader of successive
 * pages finds most of them again.
 */
export function createOpenedBlocks(maxBytes = DEFAULT_BYTES) {
  // lru-cache treats a size of 0 as unlimited.
  const maxSize = Math.max(1, maxBytes);
  const opened = new LRUCache<string, OpenedBlock>({ maxSize, sizeCalculation: sizeOf });
  return {
    get({ blockId, version }: BlockState): readonly Buffer[] | undefined {
      const found = opened.get(blockId);
      if (found === undefined || found.version === version) return found?.entries;
      opened.delete(blockId);
      return undefined;
    },
    /** @throws {Error} zlib's, when the block is damaged. */
    async open({ blockId, version }: BlockState, block: Buffer, entryCount?: number) {
      const entries = await openRawBlock(block, entryCount);
      opened.set(blockId, { version, entries });
      return entries;
    },
  };
}

/** The entries are views, so the memory in use is that of their buffers. */
function sizeOf({ entries }: OpenedBlock): number {
  return Math.max(1, entries[0]?.buffer.byteLength ?? 0);
}

export type NewestRecords = ReturnType<typeof createNewestRecords>;

/** A search row of a large record, and many of those of a minute of an attack. */
const MAX_BYTES = 16_777_216;
/** Memory of an entry in addition to its record. */
const ENTRY_BYTES = 200;

/**
 * Returns the rows of the newest searches of this process, limited in bytes: the matched text of a request is in its row minutes
 * before the list shows its record. A process that polls nothing has none, and reads stored records.
 */
export function createNewestRecords() {
  const records = new LRUCache<string, Buffer>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ length }) => length + ENTRY_BYTES,
  });
  return {
    /** Keeps the rows of events, as `rows` and byte for byte. A row that is no event is left out. */
    keep(zoneId: number, rows: readonly unknown[], raws: readonly Buffer[]): void {
      for (const [i, row] of rows.entries()) {
        const { timestamp, logId } = (row ?? {}) as { timestamp?: unknown; logId?: unknown };
        const raw = raws[i];
        if (raw === undefined || typeof timestamp !== "number" || typeof logId !== "string") continue;
        // A copy, because the row is a view of its page.
        records.set(hashZoneEventKey({ zoneId, occurredAt: timestamp, logId }), Buffer.from(raw));
      }
    },
    /** Returns the row of an event; undefined if the row is not there. */
    get: (event: ZoneEventKey): Buffer | undefined => records.get(hashZoneEventKey(event)),
  };
}
