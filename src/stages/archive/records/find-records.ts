import { inLanes } from "#lib/waiting.ts";
import { type EventKey, hashEventKey } from "#model/waf-event.ts";
import { type DaySpan, planSpans } from "../plan-spans.ts";
import type { BlockState, OpenedBlocks } from "./opened-blocks.ts";

/** Bytes per entry in `logIdHashes`. */
const HASH_BYTES = 8;
/**
 * Blocks processed in parallel. Decompression has four threads; while one block is divided into entries others are
 * being read. An opened block takes half a megabyte until its entries are copied, so there are few.
 */
const LANES = 6;

interface Directory extends BlockState {
  readonly day: string;
  readonly logIdHashes: Buffer;
}

/** Reads stored blocks. A block that is requested by id may be missing, because it was merged into others. */
export interface RecordStore {
  findBlocks(spans: readonly DaySpan[]): Promise<readonly Directory[]>;
  readBlocks(wanted: readonly Directory[]): Promise<ReadonlyMap<string, Buffer>>;
}

/**
 * Returns the records of events, byte for byte as the platform sent them, by `hashEventKey`. An event without a
 * record, or with one past its retention, is missing. Opens only blocks that hold one of the records.
 */
export async function findRecords(
  store: RecordStore,
  opened: OpenedBlocks,
  keys: readonly EventKey[],
): Promise<Map<string, Buffer>> {
  const first = await look(store, opened, keys);
  if (!first.wasMoved) return first.records;
  // Blocks were merged between the two queries. The second attempt finds their records in other blocks.
  return (await look(store, opened, keys)).records;
}

async function look(store: RecordStore, opened: OpenedBlocks, keys: readonly EventKey[]) {
  const places = placeRecords(
    await store.findBlocks(planSpans(keys.map(({ occurredAt }) => occurredAt))),
    keys,
  );
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
function placeRecords(blocks: readonly Directory[], keys: readonly EventKey[]): Place[] {
  const wanted = new Set(keys.map(hashEventKey));
  // Nearly every hash belongs to another event. The first half, as a number, rules it out without converting it to
  // text.
  const halves = new Set([...wanted].map((hash) => Number.parseInt(hash.slice(0, 8), 16)));
  return blocks.flatMap((block) => {
    const { logIdHashes } = block;
    const entries: { hash: string; index: number }[] = [];
    for (let at = 0; at < logIdHashes.length; at += HASH_BYTES) {
      if (!halves.has(logIdHashes.readUInt32BE(at))) continue;
      const hash = logIdHashes.toString("hex", at, at + HASH_BYTES);
      if (wanted.delete(hash)) entries.push({ hash, index: at / HASH_BYTES });
    }
    return entries.length === 0 ? [] : [{ block, entries }];
  });
}
