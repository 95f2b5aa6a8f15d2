import { LRUCache } from "lru-cache";
import { openRawBlock } from "../../model/raw-block.ts";

export type OpenedBlocks = ReturnType<typeof createOpenedBlocks>;

/** Which block, and which state of it: a record may be erased inside its block. */
export interface BlockState {
  readonly blockId: string;
  readonly version: string;
}

interface OpenedBlock {
  readonly version: string;
  readonly entries: readonly Buffer[];
}

/**
 * Blocks as they were opened, the ones used last, up to so many bytes: a reader that turns pages finds most of them
 * again.
 */
export function createOpenedBlocks(maxBytes: number) {
  // For lru-cache a size of 0 means no bound.
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

/** The entries are views: what stays in memory is what lies under them. */
function sizeOf({ entries }: OpenedBlock): number {
  return Math.max(1, entries[0]?.buffer.byteLength ?? 0);
}
