import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

/**
 * Returns how far Postgres's clock is ahead of this machine's, in ms. The error is at most half the query's duration.
 */
export async function readClockOffset(db: Queryable): Promise<number> {
  const before = Date.now();
  const { rows } = await db.execute<{ at: number }>(
    sql`select extract(epoch from clock_timestamp())::float8 * 1000 as at`,
  );
  const middle = (before + Date.now()) / 2;
  return (rows[0]?.at ?? middle) - middle;
}
