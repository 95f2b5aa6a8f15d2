import { and, eq, gte, inArray, lte } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { rawBlocks } from "../schema/raw-blocks.ts";

export interface NewRawBlock {
  readonly day: string;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly entryCount: number;
  readonly logIdHashes: Buffer;
  readonly block: Buffer;
}

/** The packed id hashes of every block that may hold a record of this time (epoch ms, both ends included). */
export async function readLogIdHashes(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs, days }: { fromMs: number; toMs: number; days: readonly string[] },
): Promise<Buffer[]> {
  const found = await db
    .select({ logIdHashes: rawBlocks.logIdHashes })
    .from(rawBlocks)
    .where(
      and(
        eq(rawBlocks.zoneId, zoneId),
        inArray(rawBlocks.day, [...days]),
        lte(rawBlocks.firstAt, new Date(toMs)),
        gte(rawBlocks.lastAt, new Date(fromMs)),
      ),
    );
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
