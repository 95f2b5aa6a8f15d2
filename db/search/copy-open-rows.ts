import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type pg from "pg";
import type { EventKey } from "#model/event-key.ts";
import { toColumnSql } from "#model/search-columns.ts";
import type { Span } from "#model/span.ts";
import { copyToFile } from "../postgres/copy-out.ts";
import { copyQuery } from "../postgres/copy-query.ts";
import { wafEvents } from "../schema/waf-events.ts";
import { toCondition, toMoment } from "./search-condition.ts";
import type { EventQuery } from "./search-query.ts";

const e = alias(wafEvents, "e");

interface OpenPart {
  readonly spans: readonly Span[];
  readonly columns: readonly string[];
  readonly path: string;
  /** Only the newest `limit` events that come after `after` in the order from new to old. Default: all, in no order. */
  readonly part?: { readonly after: EventKey | null; readonly limit: number };
  /** Only events of addresses that have an event of one of these rules, or one whose URL the regular expression finds. */
  readonly addressesOf?: { readonly ruleIds: readonly string[]; readonly pattern: string | null };
}

const NUMBERS = ["zone_id", "matched_key", "facts"];

/**
 * Writes columns of the events that a query finds in some spans into a CSV file, and returns how many events that were.
 * The time is written in epoch ms; no text is null. The connection must be in a transaction.
 */
export async function copyOpenRows(
  client: pg.PoolClient,
  zoneId: number,
  query: EventQuery,
  { spans, columns, path, part, addressesOf }: OpenPart,
): Promise<number> {
  if (spans.length === 0) return 0;
  const selected = columns.map((column) => {
    if (column === "occurred_at") return "(date_part('epoch', e.occurred_at) * 1000)::bigint";
    return NUMBERS.includes(column) ? `e.${column}` : `coalesce(${toColumnSql(column, "e.")}, '')`;
  });
  // The window ends with the position's millisecond, because partitions and index ranges are chosen by the window. The
  // rest of the condition only orders events within that millisecond. Written as a row comparison, the planner would
  // take it for rare and sort the rest of the day.
  const after = part?.after ?? null;
  const isBehind =
    after === null
      ? sql``
      : sql` and (${e.occurredAt} < ${toMoment(after.occurredAt)} or ${e.logId} < ${after.logId})`;
  const order =
    part === undefined ? sql`` : sql` order by ${e.occurredAt} desc, ${e.logId} desc limit ${part.limit}`;
  const isAsked = toCondition(zoneId, query, spans);
  const isOf =
    addressesOf === undefined
      ? sql``
      : sql` and coalesce(${e.ip}, '') in (select coalesce(${e.ip}, '') from ${wafEvents} ${e} where ${isAsked} and
          (${e.ruleId} = any (${sql.param([...addressesOf.ruleIds])}::text[]) or ${e.url} ~ ${addressesOf.pattern}))`;
  const select = sql`select ${sql.raw(selected.join(", "))} from ${wafEvents} ${e}
    where ${isAsked}${isOf}${isBehind}${order}`;
  // Without a filter, the next part can be read from the primary key in order. Sorting the rest of the day would cost
  // twice as much.
  if (part !== undefined && query.clauses.length === 0)
    await client.query("set local enable_sort = off; set local max_parallel_workers_per_gather = 0");
  const copied = await copyQuery(client, select, "format csv");
  return copyToFile(client, copied, path);
}
