import { sql } from "drizzle-orm";
import { LAST_MS } from "../../src/lib/units.ts";
import type { Queryable } from "../client.ts";
import { and, toCondition, toMoment } from "./search-condition.ts";
import { FOUND_COLUMNS, type FoundColumns, type FoundEvent, toFoundEvent } from "./search-found.ts";
import type { SearchClause } from "./search-query.ts";

export interface OnwardQuery {
  /** Epoch ms. */
  readonly from: number;
  readonly clauses: readonly SearchClause[];
  /** The last event of the previous page. */
  readonly after: Pick<FoundEvent, "occurredAt" | "logId"> | null;
  readonly limit: number;
}

/** Returns the zone's matching events from a time on, oldest first, in the order of the primary key. */
export async function searchOnward(
  db: Queryable,
  zoneId: number,
  { from, clauses, after, limit }: OnwardQuery,
): Promise<FoundEvent[]> {
  const condition = toCondition(zoneId, { from, to: LAST_MS, clauses });
  const isAfter =
    after === null
      ? []
      : [sql`(e.occurred_at, e.log_id) > (${toMoment(after.occurredAt)}, ${after.logId}::text)`];
  const { rows } = await db.execute<FoundColumns>(sql`
    select ${sql.raw(FOUND_COLUMNS)} from waf_events e where ${and([condition, ...isAfter])}
    order by e.occurred_at, e.log_id limit ${limit}`);
  return rows.map(toFoundEvent);
}
