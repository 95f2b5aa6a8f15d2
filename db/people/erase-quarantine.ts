/** Erases addresses from the quarantine and from what is usual. */

import { and, eq, gt, isNotNull, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type { Database, Queryable } from "../client.ts";
import { type ErasureGuard, KeyMissingError } from "../ingest/guard-page.ts";
import { assertFence } from "../postgres/leases.ts";
import { inTransaction } from "../postgres/transaction.ts";
import { quarantinedEntries } from "../schema/ingest.ts";
import { sourceUsual } from "../schema/sources.ts";
import { conditionMinutes, conditionZones } from "../schema/spikes.ts";
import { holdTombstones } from "./tombstones.ts";

const o = alias(quarantinedEntries, "o");

const ROWS_PER_TRANSACTION = 200;

interface QuarantineRewrite {
  /** Both return their argument if nothing has to change. A reason may quote names of the entry's members. */
  readonly raw: (raw: Buffer) => Buffer;
  readonly reason: (reason: string) => string;
  readonly write: boolean;
}

/**
 * Rewrites entries that could not be read. Returns how many. Deletes an entry whose new content another entry already
 * has.
 */
export async function rewriteQuarantine(
  database: Database,
  zoneId: number | null,
  rewrite: QuarantineRewrite,
): Promise<number> {
  let changed = 0;
  let after: number | null = 0;
  while (after !== null) {
    const behind: number = after;
    const page = await inTransaction(database, ({ tx }) => rewritePage(tx, { zoneId, behind }, rewrite));
    changed += page.changed;
    after = page.last;
  }
  return changed;
}

async function rewritePage(
  tx: Queryable,
  { zoneId, behind }: { zoneId: number | null; behind: number },
  rewrite: QuarantineRewrite,
): Promise<{ changed: number; last: number | null }> {
  const { id: key, raw: bytes, reason: why } = quarantinedEntries;
  const rows = await tx
    .select({ id: key, raw: bytes, reason: why })
    .from(quarantinedEntries)
    .where(and(gt(key, behind), zoneId === null ? undefined : eq(quarantinedEntries.zoneId, zoneId)))
    .orderBy(key)
    .limit(ROWS_PER_TRANSACTION)
    .for("update");
  let changed = 0;
  for (const { id, raw, reason } of rows) {
    const after = { raw: rewrite.raw(raw), reason: rewrite.reason(reason) };
    if (after.raw === raw && after.reason === reason) continue;
    changed++;
    if (rewrite.write) await replaceEntry(tx, id, after);
  }
  return { changed, last: rows.length < ROWS_PER_TRANSACTION ? null : (rows.at(-1)?.id ?? null) };
}

/** Replaces the bytes and the reason of an entry. Deletes the entry if another one already has the new bytes. */
async function replaceEntry(
  tx: Queryable,
  id: number,
  { raw, reason }: { readonly raw: Buffer; readonly reason: string },
): Promise<void> {
  await tx.delete(quarantinedEntries).where(
    sql`${quarantinedEntries.id} = ${id} and exists (select from ${quarantinedEntries} ${o}
      where ${o.zoneId} = ${quarantinedEntries.zoneId} and ${o.id} <> ${id} and ${o.rawHash} = sha256(${raw}::bytea))`,
  );
  await tx.update(quarantinedEntries).set({ raw, reason }).where(eq(quarantinedEntries.id, id));
}

/**
 * Deletes what is usual for the addresses of a person, in one zone or in all. The hashes of values that custom conditions have
 * counted cannot be told apart: all are deleted, and the next look counts them anew from the events that are left. IPv6 addresses are kept as networks, in
 * which a person cannot be told apart, so all networks are deleted; they are learnt again within two days.
 */
export async function eraseSourceUsual(
  db: Queryable,
  zoneId: number | null,
  covers: (address: string) => boolean,
): Promise<void> {
  await db
    .delete(conditionMinutes)
    .where(and(isNotNull(conditionMinutes.values), isOf(conditionMinutes.zoneId, zoneId)));
  await db.update(conditionZones).set({ counted: [] }).where(isOf(conditionZones.zoneId, zoneId));
  const isZone = isOf(sourceUsual.zoneId, zoneId);
  const { address: source } = sourceUsual;
  const rows = await db.selectDistinct({ address: source }).from(sourceUsual).where(isZone);
  const erased = rows
    .map(({ address }) => address)
    .filter((address) => address.endsWith("/64") || covers(address));
  if (erased.length === 0) return;
  await db.delete(sourceUsual).where(and(isZone, sql`${source} = any(${sql.param(erased)}::text[])`));
}

function isOf(column: PgColumn, zoneId: number | null) {
  return zoneId === null ? undefined : eq(column, zoneId);
}

interface ReleaseParts {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly fence: number };
  readonly guard: ErasureGuard;
}

/**
 * Judges held entries that cannot be stored as events: what an erasure covers is removed from them, and they stay in the
 * quarantine with their reason of today.
 * @throws {KeyMissingError} and changes nothing if the pseudonym key is missing
 */
export function releaseHeldEntries(
  database: Database,
  { zoneId, lease, guard }: ReleaseParts,
  entries: readonly { readonly id: number; readonly raw: Buffer; readonly reason: string }[],
): Promise<void> {
  return inTransaction(database, async ({ tx, client }) => {
    const tombstones = await holdTombstones(tx, client, { zoneId, sinceMs: 0, untilMs: 0 });
    const judge = await guard.judge(tombstones);
    if (judge === null) throw new KeyMissingError("Held entries cannot be judged without the pseudonym key.");
    const covers = (ip: string) => judge.orphans.length > 0 || judge.match(ip) !== null;
    for (const entry of entries) await replaceEntry(tx, entry.id, await guard.eraseUnreadable(entry, covers));
    const ids = sql.param(entries.map(({ id }) => id));
    await tx
      .update(quarantinedEntries)
      .set({ isHeld: false })
      .where(sql`${quarantinedEntries.id} = any(${ids}::bigint[])`);
    await assertFence(tx, lease.name, lease.fence);
  });
}
