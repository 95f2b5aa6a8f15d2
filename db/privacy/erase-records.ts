import { and, eq, gte, lte } from "drizzle-orm";
import { toDay } from "#model/horizon.ts";
import { cutRawBlock } from "#model/raw-block.ts";
import { type EventKey, findPositions } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { rawBlocks } from "../schema/archive.ts";

/** Empties records in a block. */
export interface RecordEraser {
  erase(block: Buffer, positions: readonly number[]): Promise<Buffer>;
}

/**
 * Empties the records of these events, even one that is kept twice. Returns how many were emptied. Their id hashes
 * stay, so that a later pass does not treat them as new. One block at a time is in memory.
 */
export function eraseRecords(
  tx: Queryable,
  zoneId: number,
  events: readonly EventKey[],
  eraser: RecordEraser,
): Promise<number> {
  return editBlocks(tx, zoneId, events, async ({ block }, positions) => ({
    block: await eraser.erase(block, positions),
  }));
}

/** Removes the records of these events, so that a later pass stores them if it shows them. Returns how many. */
export function removeRecords(tx: Queryable, zoneId: number, events: readonly EventKey[]): Promise<number> {
  return editBlocks(tx, zoneId, events, cutRawBlock);
}

type Block = Pick<typeof rawBlocks.$inferSelect, "block" | "logIdHashes" | "entryCount">;

/** Changes every block that has a record of these events; `edit` returns null for a block without records. */
async function editBlocks(
  tx: Queryable,
  zoneId: number,
  events: readonly EventKey[],
  edit: (block: Block, positions: readonly number[]) => Promise<Partial<Block> | null>,
): Promise<number> {
  let records = 0;
  for (const [day, ofDay] of groupByDay(events)) {
    for (const { blockId, logIdHashes } of await findBlocks(tx, zoneId, day, ofDay)) {
      if (findPositions(logIdHashes, ofDay).length === 0) continue;
      const isBlock = and(
        eq(rawBlocks.zoneId, zoneId),
        eq(rawBlocks.day, day),
        eq(rawBlocks.blockId, blockId),
      );
      const [row] = await tx.select().from(rawBlocks).where(isBlock).for("update");
      if (row === undefined) continue;
      // Another transaction may have removed records meanwhile.
      const positions = findPositions(row.logIdHashes, ofDay);
      if (positions.length === 0) continue;
      const edited = await edit(row, positions);
      if (edited === null) await tx.delete(rawBlocks).where(isBlock);
      else await tx.update(rawBlocks).set(edited).where(isBlock);
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
