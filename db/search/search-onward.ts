import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { ArchivedEvent } from "#model/archived-event.ts";
import type { EventKey } from "#model/event-key.ts";
import type { Queryable } from "../client.ts";
import { wafEvents } from "../schema/waf-events.ts";
import { and, toCondition, toMoment } from "./search-condition.ts";
import { FOUND_COLUMNS, type FoundColumns, toFoundEvent } from "./search-found.ts";
import type { SearchClause } from "./search-query.ts";

const e = alias(wafEvents, "e");

export interface OnwardQuery {
  /** Epoch ms; [from, to). */
  readonly from: number;
  readonly to: number;
  readonly clauses: readonly SearchClause[];
  /** The last event of the previous page, which lies in the span; null for the first page. */
  readonly after: EventKey | null;
  readonly limit: number;
}

/**
 * Returns the next matching events of a zone after a position, oldest first. Events of one millisecond are ordered by log
 * id, byte by byte. A position is an event, not a count, so events that arrive before the position do not shift the page.
 */
export async function searchOnward(
  db: Queryable,
  zoneId: number,
  { from, to, clauses, after, limit }: OnwardQuery,
): Promise<ArchivedEvent[]> {
  const condition = toCondition(zoneId, { from: after?.occurredAt ?? from, to, clauses });
  const isAfter =
    after === null
      ? []
      : [sql`(${e.occurredAt}, ${e.logId}) > (${toMoment(after.occurredAt)}, ${after.logId}::text)`];
  const { rows } = await db.execute<FoundColumns>(sql`
    select ${sql.raw(FOUND_COLUMNS)} from ${wafEvents} ${e} where ${and([condition, ...isAfter])}
    order by ${e.occurredAt}, ${e.logId} limit ${limit}`);
  return rows.map(toFoundEvent);
}
