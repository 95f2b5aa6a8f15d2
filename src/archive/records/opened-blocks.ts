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
  readonly bytes: number;
}

/**
 * Blocks as they were opened, the ones used last, up to so many bytes: a reader that turns pages finds most of them
 * again.
 */
export function createOpenedBlocks(maxBytes: number) {
  const opened = new Map<string, OpenedBlock>();
  let bytes = 0;

  function forget(blockId: string): void {
    bytes -= opened.get(blockId)?.bytes ?? 0;
    opened.delete(blockId);
  }

  function keep(blockId: string, block: OpenedBlock): void {
    forget(blockId);
    opened.set(blockId, block);
    bytes += block.bytes;
    for (const oldest of opened.keys()) {
      if (bytes <= maxBytes) return;
      forget(oldest);
    }
  }

  return {
    get({ blockId, version }: BlockState): readonly Buffer[] | undefined {
      const found = opened.get(blockId);
      if (found === undefined) return undefined;
      if (found.version !== version) {
        forget(blockId);
        return undefined;
      }
      keep(blockId, found);
      return found.entries;
    },
    /** @throws {Error} zlib's, when the block is damaged. */
    async open({ blockId, version }: BlockState, block: Buffer, entryCount?: number) {
      const entries = await openRawBlock(block, entryCount);
      // The entries are views: what stays in memory is what lies under them.
      keep(blockId, { version, entries, bytes: entries[0]?.buffer.byteLength ?? 0 });
      return entries;
    },
  };
}
