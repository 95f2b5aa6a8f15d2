import { type SQL, sql } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import type { Database } from "../client.ts";
import { toCondition, toMoment } from "./search-condition.ts";
import type { EventQuery } from "./search-query.ts";

/** The columns of an exported row, all of them text: the time in epoch ms first, then the id and the nine dimensions. */
export type ExportedRow = readonly [occurredAt: string, logId: string, ...dimensions: string[]];

/** A part is read in tens of milliseconds and held in memory once or twice. */
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
 * Every event a query finds, newest first, those of a millisecond by id, the greatest first, part by part. Each part is a
 * statement of its own that goes on where the last one ended: a slow reader holds neither a connection nor a
 * snapshot. The next part is read while one is written. Events that arrive meanwhile may be in it.
 */
export async function* readExport(
  database: Pick<Database, "pool">,
  zoneId: number,
  query: EventQuery,
): AsyncGenerator<readonly ExportedRow[], void, undefined> {
  let reading: Promise<readonly ExportedRow[]> | null = readPart(database, zoneId, query, null);
  try {
    while (reading !== null) {
      const rows: readonly ExportedRow[] = await reading;
      const last = rows.length === ROWS_PER_PART ? rows.at(-1) : undefined;
      reading = last === undefined ? null : readPart(database, zoneId, query, last);
      if (rows.length > 0) yield rows;
    }
  } finally {
    // Left early: the part under way ends by itself, and its failure is nobody's.
    reading?.catch(() => undefined);
  }
}

async function readPart(
  { pool }: Pick<Database, "pool">,
  zoneId: number,
  query: EventQuery,
  after: ExportedRow | null,
): Promise<readonly ExportedRow[]> {
  // The window ends at the position as well: partitions and index ranges are chosen by it.
  const condition =
    after === null
      ? toCondition(zoneId, query)
      : sql`${toCondition(zoneId, { ...query, to: Math.min(query.to, Number(after[0]) + 1) })} and ${isBehind(after)}`;
  const { sql: text, params } = dialect.sqlToQuery(sql`
    select ${COLUMNS} from waf_events e where ${condition}
    order by e.occurred_at desc, e.log_id desc limit ${ROWS_PER_PART}`);
  // As arrays: an object per row would cost as much as everything else of it.
  const { rows } = await pool.query<[string, string, ...string[]]>({
    text,
    values: params,
    rowMode: "array",
  });
  return rows;
}

function isBehind([at, logId]: ExportedRow): SQL {
  return sql`(e.occurred_at, e.log_id) < (${toMoment(Number(at))}, ${logId})`;
}
