import { and, between, eq, getTableColumns, gt, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { WafEvent } from "#model/waf-event.ts";
import { holdDays } from "../archive/day-source.ts";
import type { Database, Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { inTransaction } from "../postgres/transaction.ts";
import { replaceEntry } from "../privacy/erase-quarantine.ts";
import { holdTombstones } from "../privacy/tombstones.ts";
import { heldBlocks } from "../schema/held-blocks.ts";
import { heldEvents } from "../schema/held-events.ts";
import { quarantinedEntries } from "../schema/ingest.ts";
import { assertFence } from "../service/leases.ts";
import { type ErasureGuard, enterEmptied, eraseCovered, eraseFromBlocks, matchOpen } from "./guard-page.ts";
import { quarantineEntries } from "./quarantine.ts";
import { insertRawBlocks, type NewRawBlock } from "./raw-blocks.ts";
import { setAsideRecords } from "./set-aside-archived.ts";

const hb = alias(heldBlocks, "hb");
const q = alias(quarantinedEntries, "q");
const h = alias(heldEvents, "h");

/** Counts of one zone's data that is held back because the pseudonym key is missing. */
export interface HeldCounts {
  readonly zoneId: number;
  readonly events: number;
  readonly blocks: number;
  readonly entries: number;
}

const HELD_TABLES = sql`(
  select ${h.zoneId}, 1 as event, 0 as block, 0 as entry from ${heldEvents} ${h}
  union all select ${hb.zoneId}, 0, 1, 0 from ${heldBlocks} ${hb}
  union all select ${q.zoneId}, 0, 0, 1 from ${quarantinedEntries} ${q} where ${q.isHeld}) as held`;

/** Returns the counts of each zone with held data, by id. */
export async function readHeldCounts(db: Queryable): Promise<HeldCounts[]> {
  const { rows } = await db.execute<{ [Key in keyof HeldCounts]: HeldCounts[Key] }>(sql`
    select zone_id as "zoneId", sum(event)::float8 as events, sum(block)::float8 as blocks,
      sum(entry)::float8 as entries
    from ${HELD_TABLES} group by zone_id order by zone_id`);
  return rows;
}

export interface HeldEvent extends WafEvent {
  /** Version of the row: another page may add to a held event. */
  readonly version: string;
}

/** Returns the first held events of a zone in the order of their key. */
export function readHeldEvents(db: Queryable, zoneId: number, limit: number): Promise<HeldEvent[]> {
  const { heldAt: _heldAt, zoneId: _zoneId, ...columns } = getTableColumns(heldEvents);
  return db
    .select({ ...columns, version: sql<string>`ctid::text`, occurredAt: epochMs(columns.occurredAt) })
    .from(heldEvents)
    .where(eq(heldEvents.zoneId, zoneId))
    .orderBy(heldEvents.zoneId, columns.occurredAt, columns.logId)
    .limit(limit);
}

/** Deletes those held events that have not changed since they were read. */
export async function deleteHeldEvents(
  tx: Queryable,
  zoneId: number,
  events: readonly HeldEvent[],
): Promise<void> {
  const versions = events.map(({ version }) => version);
  const logIds = events.map(({ logId }) => logId);
  await tx.execute(sql`
    delete from ${heldEvents} ${h} using unnest(${sql.param(versions)}::text[]::tid[], ${sql.param(logIds)}::text[])
      as given(version, log_id)
    where ${h}.ctid = given.version and ${h.zoneId} = ${zoneId} and ${h.logId} = given.log_id`);
}

interface ReleaseParts {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly fence: number };
  readonly guard: ErasureGuard;
}

/** Returns the first held block of a zone after `after`. */
export async function readHeldBlock(
  db: Queryable,
  zoneId: number,
  after: string | null,
): Promise<(NewRawBlock & { readonly blockId: string }) | null> {
  const { heldAt: _heldAt, zoneId: zone, ...columns } = getTableColumns(heldBlocks);
  const [block] = await db
    .select({ ...columns, firstAt: epochMs(columns.firstAt), lastAt: epochMs(columns.lastAt) })
    .from(heldBlocks)
    .where(and(eq(zone, zoneId), after === null ? undefined : gt(columns.blockId, after)))
    .orderBy(columns.blockId)
    .limit(1);
  return block ?? null;
}

/**
 * Judges a held block and moves it to raw_blocks, or its records to the quarantine if its day is archived. Returns
 * false and changes nothing if the pseudonym key is missing, or if an event in the block's time span is still held:
 * such an event decides whether its record must be emptied.
 */
export function releaseHeldBlock(
  database: Database,
  { zoneId, lease, guard }: ReleaseParts,
  block: NewRawBlock & { readonly blockId: string },
): Promise<boolean> {
  return inTransaction(database, async ({ tx, client }) => {
    const { firstAt, lastAt, blockId } = block;
    const archived = await holdDays(tx, client, { zoneId, firstAt, lastAt });
    const tombstones = await holdTombstones(tx, client, { zoneId, sinceMs: firstAt, untilMs: lastAt });
    const judge = await guard.judge(tombstones);
    if (judge === null || (await isAnyHeld(tx, zoneId, { firstAt, lastAt }))) return false;
    const { rowCount } = await tx
      .delete(heldBlocks)
      .where(and(eq(heldBlocks.zoneId, zoneId), eq(heldBlocks.blockId, blockId)));
    if (rowCount === 0) return true;
    const open = await matchOpen(tombstones, guard);
    const covering = { match: judge.match, open, eraser: guard };
    const { erased, emptied } = await eraseCovered(tx, zoneId, { firstAt, lastAt }, covering);
    const released = await eraseFromBlocks([block], erased, guard);
    await quarantineEntries(tx, zoneId, await setAsideRecords(released, archived));
    await insertRawBlocks(
      tx,
      zoneId,
      released.filter(({ day }) => !archived.has(day)),
    );
    await assertFence(tx, lease.name, lease.fence);
    await enterEmptied(tx, emptied);
    return true;
  });
}

async function isAnyHeld(
  tx: Queryable,
  zoneId: number,
  { firstAt, lastAt }: { firstAt: number; lastAt: number },
): Promise<boolean> {
  const held = await tx
    .select({ logId: h.logId })
    .from(h)
    .where(and(eq(h.zoneId, zoneId), between(h.occurredAt, new Date(firstAt), new Date(lastAt))))
    .limit(1);
  return held.length > 0;
}

/** Judges the held unreadable entries of a zone. Returns false and changes nothing if the pseudonym key is missing. */
export function releaseHeldEntries(
  database: Database,
  { zoneId, lease, guard }: ReleaseParts,
  limit: number,
): Promise<{ readonly isJudged: boolean; readonly entries: number }> {
  return inTransaction(database, async ({ tx, client }) => {
    const tombstones = await holdTombstones(tx, client, { zoneId, sinceMs: 0, untilMs: 0 });
    const judge = await guard.judge(tombstones);
    if (judge === null) return { isJudged: false, entries: 0 };
    const covers = (ip: string) => judge.orphans.length > 0 || judge.match(ip) !== null;
    const { id: key, raw: bytes, reason: why, isHeld } = quarantinedEntries;
    const rows = await tx
      .select({ id: key, raw: bytes, reason: why })
      .from(quarantinedEntries)
      .where(and(eq(quarantinedEntries.zoneId, zoneId), isHeld))
      .orderBy(key)
      .limit(limit)
      .for("update");
    for (const row of rows) {
      const after = await guard.eraseUnreadable(row, covers);
      if (after.raw !== row.raw || after.reason !== row.reason) await replaceEntry(tx, row.id, after);
    }
    const ids = sql.param(rows.map(({ id }) => id));
    await tx.update(quarantinedEntries).set({ isHeld: false }).where(sql`${key} = any(${ids}::bigint[])`);
    await assertFence(tx, lease.name, lease.fence);
    return { isJudged: true, entries: rows.length };
  });
}
