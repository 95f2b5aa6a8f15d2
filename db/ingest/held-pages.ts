import { and, eq, sql } from "drizzle-orm";
import type { WafEvent } from "#model/waf-event.ts";
import { holdDays } from "../archive/day-lock.ts";
import type { Database, Queryable } from "../client.ts";
import { inTransaction } from "../postgres/transaction.ts";
import { replaceRaw } from "../privacy/erase-quarantine.ts";
import { holdTombstones } from "../privacy/tombstones.ts";
import { quarantinedEntries } from "../schema/quarantined-entries.ts";
import { assertFence } from "../service/leases.ts";
import { type ErasureGuard, enterEmptied, eraseCovered, eraseFromBlocks, matchOpen } from "./guard-page.ts";
import { quarantineEntries } from "./quarantine.ts";
import { insertRawBlocks, type NewRawBlock } from "./raw-blocks.ts";
import { setAsideRecords } from "./set-aside-archived.ts";

/** Counts of one zone's data that is held back because the pseudonym key is missing. */
export interface HeldCounts {
  readonly zoneId: number;
  readonly events: number;
  readonly blocks: number;
  readonly entries: number;
}

const HELD_TABLES = sql`(
  select zone_id, 1 as event, 0 as block, 0 as entry from held_events
  union all select zone_id, 0, 1, 0 from held_blocks
  union all select zone_id, 0, 0, 1 from quarantined_entries where is_held) as held`;

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
export async function readHeldEvents(db: Queryable, zoneId: number, limit: number): Promise<HeldEvent[]> {
  const { rows } = await db.execute<{ [Key in keyof HeldEvent]: HeldEvent[Key] }>(sql`
    select ctid::text as version, (extract(epoch from occurred_at) * 1000)::float8 as "occurredAt", log_id as "logId",
      route, feature, rule_id as "ruleId", ip, ja4, ua, url, asn, country, action, message
    from held_events where zone_id = ${zoneId} order by zone_id, occurred_at, log_id limit ${limit}`);
  return rows;
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
    delete from held_events h using unnest(${sql.param(versions)}::text[]::tid[], ${sql.param(logIds)}::text[])
      as given(version, log_id)
    where h.ctid = given.version and h.zone_id = ${zoneId} and h.log_id = given.log_id`);
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
  const behind = after === null ? sql`true` : sql`block_id > ${after}::uuid`;
  const { rows } = await db.execute<{
    day: string;
    firstAt: number;
    lastAt: number;
    entryCount: number;
    blockId: string;
    logIdHashes: Buffer;
    block: Buffer;
  }>(sql`
    select day::text as day, (extract(epoch from first_at) * 1000)::float8 as "firstAt",
      (extract(epoch from last_at) * 1000)::float8 as "lastAt", entry_count as "entryCount", block_id as "blockId",
      log_id_hashes as "logIdHashes", block
    from held_blocks where zone_id = ${zoneId} and ${behind} order by block_id limit 1`);
  return rows[0] ?? null;
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
    const { rowCount } = await tx.execute(
      sql`delete from held_blocks where zone_id = ${zoneId} and block_id = ${blockId}::uuid`,
    );
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
  const { rowCount } = await tx.execute(sql`
    select from held_events where zone_id = ${zoneId}
      and occurred_at between ${new Date(firstAt)} and ${new Date(lastAt)} limit 1`);
  return (rowCount ?? 0) > 0;
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
    const { id: key, raw: bytes, isHeld } = quarantinedEntries;
    const rows = await tx
      .select({ id: key, raw: bytes })
      .from(quarantinedEntries)
      .where(and(eq(quarantinedEntries.zoneId, zoneId), isHeld))
      .orderBy(key)
      .limit(limit)
      .for("update");
    for (const { id, raw } of rows) {
      const after = await guard.eraseUnreadable(raw, covers);
      if (after !== raw) await replaceRaw(tx, id, after);
    }
    const ids = sql.param(rows.map(({ id }) => id));
    await tx.update(quarantinedEntries).set({ isHeld: false }).where(sql`${key} = any(${ids}::bigint[])`);
    await assertFence(tx, lease.name, lease.fence);
    return { isJudged: true, entries: rows.length };
  });
}
