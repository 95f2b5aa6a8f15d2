import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import type { Database } from "../client.ts";
import { toCondition } from "./search-condition.ts";
import type { EventQuery } from "./search-query.ts";
import { FOUND_COLUMNS, type FoundColumns, type FoundEvent, toFoundEvent } from "./search-rows.ts";

const ROWS_PER_FETCH = 2_000;

/**
 * Every event a query finds, newest first, in batches, as it was when the stream began. Holds one connection and one
 * batch; a caller that leaves early frees both. A slow reader keeps a snapshot open: bound it.
 */
export async function* streamEvents(
  { pool }: Pick<Database, "pool">,
  zoneId: number,
  query: EventQuery,
): AsyncGenerator<readonly FoundEvent[], void, undefined> {
  const client = await pool.connect();
  const db = drizzle(client, { casing: "snake_case" });
  let isOver = false;
  try {
    await db.execute(sql`begin isolation level repeatable read read only`);
    await db.execute(sql`
      declare found_events no scroll cursor for select ${FOUND_COLUMNS} from waf_events e
      where ${toCondition(zoneId, query)} order by e.occurred_at desc, e.log_id desc`);
    for (;;) {
      const { rows } = await db.execute<FoundColumns>(
        sql`fetch forward ${sql.raw(String(ROWS_PER_FETCH))} from found_events`,
      );
      if (rows.length > 0) yield rows.map(toFoundEvent);
      if (rows.length < ROWS_PER_FETCH) break;
    }
    await db.execute(sql`commit`);
    isOver = true;
  } finally {
    // What a failed or abandoned stream leaves behind is Postgres's to clean up.
    client.release(!isOver);
  }
}
