import { openRawBlock } from "../ingest/raw-block.ts";

export type OpenedBlocks = ReturnType<typeof createOpenedBlocks>;

/**
 * Blocks as they were opened, the ones used last, up to so many bytes: a reader that turns pages finds most of them
 * again. A block never changes; one that is merged into others gets another id.
 */
export function createOpenedBlocks(maxBytes: number) {
  const opened = new Map<string, { readonly entries: readonly Buffer[]; readonly bytes: number }>();
  let bytes = 0;

  function evict(): void {
    for (const [blockId, block] of opened) {
      if (bytes <= maxBytes) return;
      opened.delete(blockId);
      bytes -= block.bytes;
    }
  }

  return {
    get(blockId: string): readonly Buffer[] | undefined {
      const found = opened.get(blockId);
      if (found === undefined) return undefined;
      opened.delete(blockId);
      opened.set(blockId, found);
      return found.entries;
    },
    /** @throws {Error} zlib's, when the block is damaged. */
    async open(blockId: string, block: Buffer): Promise<readonly Buffer[]> {
      const entries = await openRawBlock(block);
      const size = entries.reduce((sum, entry) => sum + entry.length, 0);
      bytes += size - (opened.get(blockId)?.bytes ?? 0);
      opened.delete(blockId);
      opened.set(blockId, { entries, bytes: size });
      evict();
      return entries;
    },
  };
}
