import { type SQL, sql } from "drizzle-orm";
import type pg from "pg";
import type { Queryable } from "../client.ts";
import { ADVISORY_LOCKS } from "../postgres/advisory-locks.ts";
import { inOneTrip } from "../postgres/one-trip.ts";

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
  const keptSince = sql`least(${since}::timestamptz - interval '1 second', (select min(kept_at) from event_aliases
    where zone_id = ${zoneId} and other_at between ${since} and ${new Date(untilMs)}))`;
  const [, rows] = await inOneTrip(client, () => [
    keepErasuresWaiting(tx),
    readRows(tx, sql`(zone_id = ${zoneId} or zone_id is null) and until_at >= ${keptSince}`),
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
  return readRows(db, sql`greatest(until_at, requested_at) >= ${new Date(sinceMs)}`);
}

async function readRows(db: Queryable, where: SQL): Promise<DatedTombstone[]> {
  const { rows } = await db.execute<DatedTombstone & Record<string, unknown>>(sql`
    select id::float8 as id, ended_at is null as "isOpen", (extract(epoch from until_at) * 1000)::float8 as "untilAt", family, prefix, key_id as "keyId", hash,
      masked_hash as "maskedHash", masked_prefix as "maskedPrefix", zone_id as "zoneId",
      (extract(epoch from requested_at) * 1000)::float8 as "requestedAt"
    from erasures where ${where} order by id`);
  return rows;
}
