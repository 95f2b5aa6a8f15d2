import { promisify } from "node:util";
import zlib from "node:zlib";
import { sliceArray } from "#lib/json.ts";
import { DAY_MS } from "#lib/units.ts";
import { toDay } from "./horizon.ts";
import { packLogIdHashes, unpackLogIdHashes } from "./waf-event.ts";

/**
 * Smaller blocks compress worse, larger ones cost more to open for a single record. Measured at level 1: 122 bytes an
 * event with blocks of 128 KiB, 104 with 512 KiB, 99 with 1 MiB; opening one takes 0.2, 0.3 and 0.6 ms.
 */
const TARGET_BYTES = 524_288;
/** Level 3 gains 1 % on blocks of this size and costs a tenth more. Higher levels cost three times as much. */
const LEVEL = 1;
/** Highest usual compression ratio. A higher ratio only means more pieces. */
const MOST_COMPRESSED = 24;

const compress = promisify(zlib.zstdCompress);
const decompress = promisify(zlib.zstdDecompress);

export interface RawEntry {
  readonly occurredAt: number;
  readonly logIdHash: string;
  readonly raw: Buffer;
}

export interface RawBlock {
  /** UTC day, `yyyy-mm-dd`. */
  readonly day: string;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly entryCount: number;
  readonly logIdHashes: Buffer;
  /** zstd over a JSON array whose items are the entries byte for byte. */
  readonly block: Buffer;
}

/** Packs entries, in the order given, into compressed blocks of one UTC day each. */
export async function packRawBlocks(entries: readonly RawEntry[]): Promise<RawBlock[]> {
  return Promise.all(groupEntries(entries).map(packBlock));
}

/**
 * Returns the entries of a block, byte for byte. With `entryCount` it is ten times as fast.
 * @throws {Error} of zlib if the block is damaged or cut
 */
export async function openRawBlock(block: Buffer, entryCount?: number): Promise<readonly Buffer[]> {
  const array = await decompress(block, { chunkSize: piecesOf(block) });
  const cut = entryCount === undefined ? null : cutAtSeparators(array, entryCount);
  return cut ?? sliceArray(array, 0).items;
}

/**
 * Returns the piece size. Most blocks are decompressed in one piece: by default each 16 KiB would wait for a thread.
 * A small block must not use a large piece, because its entries are views of it.
 */
function piecesOf(block: Buffer): number {
  return Math.min(Math.max(MOST_COMPRESSED * block.length, 16_384), 2 * TARGET_BYTES);
}

/** Cuts the array at its separators; null unless their number is as expected, because one may lie in an entry. */
function cutAtSeparators(array: Buffer, entryCount: number): Buffer[] | null {
  const entries: Buffer[] = [];
  let from = OPEN.length;
  for (let at = array.indexOf(SEPARATOR); at !== -1; at = array.indexOf(SEPARATOR, from)) {
    entries.push(array.subarray(from, at));
    from = at + SEPARATOR.length;
  }
  entries.push(array.subarray(from, array.length - CLOSE.length));
  return entries.length === entryCount ? entries : null;
}

/** Returns the same block with the entries at some positions replaced. */
export async function rewriteRawBlock(
  block: Buffer,
  positions: readonly number[],
  replace: (raw: Buffer) => Buffer,
): Promise<Buffer> {
  const entries = [...(await openRawBlock(block))];
  for (const position of positions) {
    const raw = entries[position];
    if (raw !== undefined) entries[position] = replace(raw);
  }
  return compress(joinEntries(entries), COMPRESSION);
}

/** Returns a block without the entries at some positions, or null if none is left. */
export async function cutRawBlock(
  { block, logIdHashes }: Pick<RawBlock, "block" | "logIdHashes">,
  positions: readonly number[],
): Promise<Pick<RawBlock, "block" | "logIdHashes" | "entryCount"> | null> {
  const cut = new Set(positions);
  const isKept = (_: unknown, position: number) => !cut.has(position);
  const entries = (await openRawBlock(block)).filter(isKept);
  if (entries.length === 0) return null;
  return {
    block: await compress(joinEntries(entries), COMPRESSION),
    logIdHashes: packLogIdHashes(unpackLogIdHashes(logIdHashes).filter(isKept)),
    entryCount: entries.length,
  };
}

function joinEntries(entries: readonly Buffer[]): Buffer {
  return Buffer.concat([
    OPEN,
    ...entries.flatMap((raw, index) => (index === 0 ? [raw] : [SEPARATOR, raw])),
    CLOSE,
  ]);
}

function groupEntries(entries: readonly RawEntry[]): RawEntry[][] {
  const groups: RawEntry[][] = [];
  const open = new Map<number, { group: RawEntry[]; bytes: number }>();
  for (const entry of entries) {
    const day = Math.floor(entry.occurredAt / DAY_MS);
    let current = open.get(day);
    if (current === undefined || current.bytes >= TARGET_BYTES) {
      current = { group: [], bytes: 0 };
      open.set(day, current);
      groups.push(current.group);
    }
    current.group.push(entry);
    current.bytes += entry.raw.length;
  }
  return groups;
}

async function packBlock(entries: readonly RawEntry[]): Promise<RawBlock> {
  let firstAt = Number.POSITIVE_INFINITY;
  let lastAt = Number.NEGATIVE_INFINITY;
  for (const { occurredAt } of entries) {
    firstAt = Math.min(firstAt, occurredAt);
    lastAt = Math.max(lastAt, occurredAt);
  }
  return {
    day: toDay(firstAt),
    firstAt,
    lastAt,
    entryCount: entries.length,
    logIdHashes: packLogIdHashes(entries.map(({ logIdHash }) => logIdHash)),
    block: await compress(joinEntries(entries.map(({ raw }) => raw)), COMPRESSION),
  };
}

/** Includes a checksum, so that a damaged block never opens as other records. */
const COMPRESSION = {
  params: { [zlib.constants.ZSTD_c_compressionLevel]: LEVEL, [zlib.constants.ZSTD_c_checksumFlag]: 1 },
};
const OPEN = Buffer.from("[");
const SEPARATOR = Buffer.from(",\n");
const CLOSE = Buffer.from("]");
