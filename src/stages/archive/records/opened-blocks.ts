import { LRUCache } from "lru-cache";
import { openRawBlock } from "#model/raw-block.ts";

export type OpenedBlocks = ReturnType<typeof createOpenedBlocks>;

/** A block and its version, because a record may be erased within its block. */
export interface BlockState {
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
