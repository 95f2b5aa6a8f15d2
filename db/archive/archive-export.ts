import { sql } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import type { Database } from "../client.ts";
import { runCancellable } from "../postgres/cancellable.ts";
import type { EventQuery } from "../search/search-query.ts";
import { fromWaf, readParts } from "./archive-parts.ts";

/** The columns of an exported row, all of them text: the time in epoch ms, the id, then the nine dimensions. */
export type ExportedRow = readonly [occurredAt: string, logId: string, ...dimensions: string[]];

/** A part is read in tens of milliseconds. One or two parts are in memory at once. */
const ROWS_PER_PART = 4_000;

const COLUMNS = sql.raw(
  [
    "(date_part('epoch', e.occurred_at) * 1000)::bigint",
    "e.log_id",
    ...["feature", "rule_id", "ip", "ja4", "ua", "url", "asn", "country", "action"].map(
      (name) => `coalesce(e.${name}, '')`,
    ),
  ].join(", "),
);
const dialect = new PgDialect();

/**
 * Returns every event that a query finds, in the order of `fromWaf`, part by part. The signal cancels the running
 * statement.
 */
export function readExport(
  database: Database,
  zoneId: number,
  query: EventQuery,
  signal: AbortSignal,
): AsyncGenerator<readonly ExportedRow[], void, undefined> {
  return readParts(async (after) => {
    const { sql: text, params } = dialect.sqlToQuery(
      sql`select ${COLUMNS} from ${fromWaf(zoneId, query, { after, limit: ROWS_PER_PART })}`,
    );
    // Rows come as arrays: an object per row would double the cost of reading.
    const { rows: part } = await runCancellable(database, signal, (_, client) =>
      client.query<[string, string, ...string[]]>({ text, values: params, rowMode: "array" }),
    );
    const last = part.length === ROWS_PER_PART ? part.at(-1) : undefined;
    return { part, end: last === undefined ? null : { at: Number(last[0]), logId: last[1] } };
  });
}
