import { eq, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Database, Queryable } from "../client.ts";
import { replaceEntry } from "../people/erase-quarantine.ts";
import { holdTombstones } from "../people/tombstones.ts";
import { assertFence } from "../postgres/leases.ts";
import { inTransaction } from "../postgres/transaction.ts";
import { quarantinedEntries } from "../schema/ingest.ts";
import type { ErasureGuard } from "./guard-page.ts";
import { KeyMissingError } from "./store-page.ts";

const q = alias(quarantinedEntries, "q");

/** How much of a zone is held in the quarantine because the pseudonym key is missing. */
export interface HeldCounts {
  readonly zoneId: number;
  /** Events, records and entries that cannot be read. */
  readonly entries: number;
}

/** Returns the count of each zone with held entries, by id. */
export function readHeldCounts(db: Queryable): Promise<HeldCounts[]> {
  return db
    .select({ zoneId: q.zoneId, entries: sql<number>`count(*)::integer` })
    .from(q)
    .where(eq(q.isHeld, true))
    .groupBy(q.zoneId)
    .orderBy(q.zoneId);
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
