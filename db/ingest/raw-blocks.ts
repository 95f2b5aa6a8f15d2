import { and, eq, gte, inArray, lte } from "drizzle-orm";
import { unionAll } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { heldBlocks } from "../schema/held-blocks.ts";
import { rawBlocks } from "../schema/raw-blocks.ts";

export interface NewRawBlock {
  readonly day: string;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly entryCount: number;
  readonly logIdHashes: Buffer;
  readonly block: Buffer;
}

/**
 * Returns the packed id hashes of every block that may hold a record of this time span (epoch ms, both ends
 * included). Includes blocks that are held back.
 */
export async function readLogIdHashes(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs, days }: { fromMs: number; toMs: number; days: readonly string[] },
): Promise<Buffer[]> {
  const hashesOf = (table: typeof rawBlocks | typeof heldBlocks) =>
    db
      .select({ logIdHashes: table.logIdHashes })
      .from(table)
      .where(
        and(
          eq(table.zoneId, zoneId),
          inArray(table.day, [...days]),
          lte(table.firstAt, new Date(toMs)),
          gte(table.lastAt, new Date(fromMs)),
        ),
      );
  const found = await unionAll(hashesOf(rawBlocks), hashesOf(heldBlocks));
  return found.map(({ logIdHashes }) => logIdHashes);
}

export async function insertRawBlocks(
  db: Queryable,
  zoneId: number,
  blocks: readonly NewRawBlock[],
): Promise<void> {
  if (blocks.length === 0) return;
  await db.insert(rawBlocks).values(
    blocks.map(({ day, firstAt, lastAt, entryCount, logIdHashes, block }) => ({
      zoneId,
      day,
      firstAt: new Date(firstAt),
      lastAt: new Date(lastAt),
      entryCount,
      logIdHashes,
      block,
    })),
  );
}
