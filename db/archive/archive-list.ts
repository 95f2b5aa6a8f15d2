import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { toMoment } from "../search/search-condition.ts";
import { FOUND_COLUMNS, type FoundColumns, type FoundEvent, toFoundEvent } from "../search/search-found.ts";

export interface DayPageQuery {
  /** Epoch ms; [from, to). */
  readonly from: number;
  readonly to: number;
  /** The last event of the previous page; null for the first page. */
  readonly after: { readonly occurredAt: number; readonly logId: string } | null;
  readonly limit: number;
}

/**
 * Returns the next events after a position, oldest first. Events of one millisecond are ordered by log id, byte by
 * byte. A position is an event, not a count, so events that arrive before the position do not shift the page.
 */
export async function readDayPage(
  db: Queryable,
  zoneId: number,
  { from, to, after, limit }: DayPageQuery,
): Promise<FoundEvent[]> {
  const isBehind =
    after === null
      ? sql`e.occurred_at >= ${toMoment(from)}`
      : sql`(e.occurred_at, e.log_id) > (${toMoment(after.occurredAt)}, ${after.logId}) and e.occurred_at >= ${toMoment(after.occurredAt)}`;
  const found = await db.execute<FoundColumns>(sql`
    select ${sql.raw(FOUND_COLUMNS)} from waf_events e
    where e.zone_id = ${zoneId} and ${isBehind} and e.occurred_at < ${toMoment(to)}
    order by e.occurred_at, e.log_id limit ${limit}`);
  return found.rows.map(toFoundEvent);
}
