/** Erases the records of events, and keeps the times that they showed. */
import { and, between, eq, gte, lte } from "drizzle-orm";
import { toDay } from "#model/horizon.ts";
import { cutRawBlock } from "#model/raw-block.ts";
import { type EventKey, findPositions } from "#model/waf-event.ts";
import { readOtherTimes } from "../archive/read-files.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { rawBlocks } from "../schema/archive.ts";
import { eventAliases } from "../schema/events.ts";

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

/** Returns the keys under which records of these events may be kept: the events' own keys and those of their aliases. */
export async function addOtherTimes(
  tx: Queryable,
  zoneId: number,
  events: readonly EventKey[],
): Promise<EventKey[]> {
  if (events.length === 0) return [];
  const others = await readOtherTimes(
    tx,
    events.map((event) => ({ zoneId, ...event })),
  );
  const aliases = others.flatMap(({ index, occurredAt }) => {
    const event = events[index];
    return event === undefined ? [] : [{ logId: event.logId, occurredAt }];
  });
  return [...events, ...aliases];
}

/** Returns the stored keys of the events that have an alias in a time span (epoch ms, both ends included). */
export function readKeptTimes(
  tx: Queryable,
  zoneId: number,
  { firstAt, lastAt }: { firstAt: number; lastAt: number },
): Promise<EventKey[]> {
  const { keptAt, otherAt, logId } = eventAliases;
  return tx
    .select({ occurredAt: epochMs(keptAt), logId })
    .from(eventAliases)
    .where(and(eq(eventAliases.zoneId, zoneId), between(otherAt, new Date(firstAt), new Date(lastAt))));
}
