import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type pg from "pg";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { ADVISORY_LOCKS, inOneTrip } from "../postgres/transaction.ts";
import { eventAliases } from "../schema/events.ts";
import { erasures } from "../schema/privacy.ts";

const x = alias(erasures, "x");
const ea = alias(eventAliases, "ea");

/** The record that an erasure leaves; times in epoch ms. */
export interface TombstoneRow {
  /** Id of the erasure. */
  readonly id: number;
  /**
   * True while the erasure has not processed all stored data. Data that is emptied meanwhile counts for its receipt.
   */
  readonly isOpen: boolean;
  readonly untilAt: number;
  readonly family: number;
  readonly prefix: number;
  readonly keyId: string;
  readonly hash: Buffer;
  readonly maskedHash: Buffer | null;
  readonly maskedPrefix: number | null;
}

/**
 * Returns the tombstones that may cover events shown from `sinceMs` to `untilMs` (epoch ms), and blocks new erasures
 * until the transaction ends. An event may be stored under an earlier time than the one it is shown under: an alias of
 * it, or a time within a second. An erasure that began before is in the result. One that begins later waits and then
 * sees what this transaction has stored. Two statements in one round trip, because the second must see what was
 * committed while the first waited.
 */
export async function holdTombstones(
  tx: Queryable,
  client: pg.PoolClient,
  { zoneId, sinceMs, untilMs }: { zoneId: number; sinceMs: number; untilMs: number },
): Promise<TombstoneRow[]> {
  const since = new Date(sinceMs);
  // Postgres runs the subquery only if there are tombstones.
  const keptSince = sql`least(${since}::timestamptz - interval '1 second', (select min(${ea.keptAt})
    from ${eventAliases} ${ea} where ${ea.zoneId} = ${zoneId} and ${ea.otherAt} between ${since} and ${new Date(untilMs)}))`;
  const [, rows] = await inOneTrip(client, () => [
    keepErasuresWaiting(tx),
    readRows(tx, sql`(${x.zoneId} = ${zoneId} or ${x.zoneId} is null) and ${x.untilAt} >= ${keptSince}`),
  ]);
  return rows;
}

/** A separate function, because a bare statement would be sent only after the statements that functions have sent. */
async function keepErasuresWaiting(tx: Queryable): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock_shared(${ADVISORY_LOCKS.erasures})`);
}

/** Waits for the running transactions of ingest, and blocks new ones until this transaction ends. */
export async function waitForIngest(tx: Queryable): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.erasures})`);
}

export interface DatedTombstone extends TombstoneRow {
  /** Null: every zone. */
  readonly zoneId: number | null;
  readonly requestedAt: number;
}

/** Returns every zone's tombstones that were made since `sinceMs` or cover anything since then. */
export function readTombstones(db: Queryable, sinceMs: number): Promise<DatedTombstone[]> {
  return readRows(db, sql`greatest(${x.untilAt}, ${x.requestedAt}) >= ${new Date(sinceMs)}`);
}

async function readRows(db: Queryable, where: SQL): Promise<DatedTombstone[]> {
  return db
    .select({
      id: x.id,
      isOpen: sql<boolean>`${x.endedAt} is null`,
      requestedAt: epochMs(x.requestedAt),
      untilAt: epochMs(x.untilAt),
      zoneId: x.zoneId,
      family: x.family,
      prefix: x.prefix,
      keyId: x.keyId,
      hash: x.hash,
      maskedHash: x.maskedHash,
      maskedPrefix: x.maskedPrefix,
    })
    .from(x)
    .where(where)
    .orderBy(x.id);
}
