import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type pg from "pg";
import { DAY_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";
import { inOneTrip } from "../postgres/one-trip.ts";
import { archiveFiles } from "../schema/archive-files.ts";

const f = alias(archiveFiles, "f");

/** First number of a pair of advisory lock numbers; the second is the day, counted from 1970. */
const DAY_LOCK = 7_603_102;

/** Waits for the pages of ingest that store events of this UTC day, and blocks new ones until the transaction ends. */
export async function lockArchiveDay(tx: Queryable, day: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(${DAY_LOCK}, ${Date.parse(day) / DAY_MS}::integer)`);
}

/**
 * Returns those of the UTC days from `firstAt` to `lastAt` (epoch ms) that are archive days of the zone, and keeps the
 * others from becoming archive days until the transaction ends. Two statements in one round trip, because the second must
 * see what was committed while the first waited.
 */
export async function holdDays(
  tx: Queryable,
  client: pg.PoolClient,
  { zoneId, firstAt, lastAt }: { zoneId: number; firstAt: number; lastAt: number },
): Promise<ReadonlySet<string>> {
  const [from, to] = [Math.floor(firstAt / DAY_MS), Math.floor(lastAt / DAY_MS)];
  const [, found] = await inOneTrip(client, () => [
    keepArchiveWaiting(tx, from, to),
    tx.execute<{ day: string }>(sql`
      select ${f.day}::text from ${archiveFiles} ${f}
      where ${f.zoneId} = ${zoneId} and ${f.day} between ${toDay(firstAt)}::date and ${toDay(lastAt)}::date
        and ${f.kind} = 'events' and ${f.retiredAt} is null`),
  ]);
  return new Set(found.rows.map(({ day }) => day));
}

/** A separate function, because a bare statement would be sent only after the statements that functions have sent. */
async function keepArchiveWaiting(tx: Queryable, from: number, to: number): Promise<void> {
  await tx.execute(
    sql`select pg_advisory_xact_lock_shared(${DAY_LOCK}, day) from generate_series(${from}::integer, ${to}::integer) as day`,
  );
}
