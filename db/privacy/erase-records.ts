import { and, eq, gte, lte } from "drizzle-orm";
import type { EventKey } from "#model/event-key.ts";
import { toDay } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";
import { rawBlocks } from "../schema/raw-blocks.ts";

/** Finds records in a block and empties them. */
export interface RecordEraser {
  /** Returns the positions of these events' records. */
  find(logIdHashes: Buffer, events: readonly EventKey[]): readonly number[];
  erase(block: Buffer, positions: readonly number[]): Promise<Buffer>;
}

/**
 * Empties the records of these events, even one that is kept twice. Returns how many were emptied. Their id hashes
 * stay, so that a later pass does not treat them as new. One block at a time is in memory.
 */
export async function eraseRecords(
  tx: Queryable,
  zoneId: number,
  events: readonly EventKey[],
  eraser: RecordEraser,
): Promise<number> {
  let records = 0;
  for (const [day, ofDay] of groupByDay(events)) {
    for (const { blockId, logIdHashes } of await findBlocks(tx, zoneId, day, ofDay)) {
      const positions = eraser.find(logIdHashes, ofDay);
      if (positions.length === 0) continue;
      const isBlock = and(
        eq(rawBlocks.zoneId, zoneId),
        eq(rawBlocks.day, day),
        eq(rawBlocks.blockId, blockId),
      );
      const [row] = await tx.select({ block: rawBlocks.block }).from(rawBlocks).where(isBlock).for("update");
      if (row === undefined) continue;
      await tx
        .update(rawBlocks)
        .set({ block: await eraser.erase(row.block, positions) })
        .where(isBlock);
      records += positions.length;
    }
  }
  return records;
}

function findBlocks(tx: Queryable, zoneId: number, day: string, events: readonly EventKey[]) {
  const times = events.map(({ occurredAt }) => occurredAt);
  const { blockId, logIdHashes, firstAt, lastAt } = rawBlocks;
  return tx
    .select({ blockId, logIdHashes })
    .from(rawBlocks)
    .where(
      and(
        eq(rawBlocks.zoneId, zoneId),
        eq(rawBlocks.day, day),
        lte(firstAt, new Date(Math.max(...times))),
        gte(lastAt, new Date(Math.min(...times))),
      ),
    )
    .orderBy(blockId);
}

function groupByDay(events: readonly EventKey[]): Map<string, EventKey[]> {
  const days = new Map<string, EventKey[]>();
  for (const event of events) {
    const day = toDay(event.occurredAt);
    const known = days.get(day);
    if (known === undefined) days.set(day, [event]);
    else known.push(event);
  }
  return days;
}
