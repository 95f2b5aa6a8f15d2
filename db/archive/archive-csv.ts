import { sql } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import type pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import type { Database } from "../client.ts";
import { runCancellable } from "../postgres/cancellable.ts";
import { escapeCsvControls } from "../search/escape-csv-controls.ts";
import { finishCsvLines, readLastLine } from "../search/finish-csv-lines.ts";
import type { EventQuery } from "../search/search-query.ts";
import { fromWaf, readParts } from "./archive-parts.ts";

/** A part is a few megabytes and is read in tens of milliseconds. Two or three parts are in memory at once. */
const ROWS_PER_PART = 12_000;
const COLUMNS = ["feature", "rule_id", "ip", "ja4", "ua", "url", "asn", "country", "action"];
/**
 * Code points of the characters that `toCsvLine` guards against: tab, LF, CR, + - = @ and the full-width forms of the
 * last four.
 */
const FORMULA_STARTS = "9, 10, 13, 43, 45, 61, 64, 65291, 65293, 65309, 65312";
/**
 * The null marker of COPY. No column is null, but COPY quotes every text that equals its null marker, so the marker
 * must be a text that never occurs.
 */
const NO_NULL = "\u0001";

const CELLS = sql.raw(
  COLUMNS.map((column) => {
    const text = `coalesce(e.${column}, '')`;
    return `case when ascii(${text}) in (${FORMULA_STARTS}) then '''' || ${text} else ${text} end`;
  }).join(", "),
);
const dialect = new PgDialect();

/**
 * Returns every event that a query finds, in the order of `fromWaf`, as the CSV lines that `toCsvLine` would write,
 * part by part. Postgres writes the lines, which is nearly as fast as COPY alone. The signal cancels the running
 * statement.
 */
export async function* readCsvExport(
  database: Database,
  zoneId: number,
  query: EventQuery,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const parts = readParts(async (after) => {
    const { statement, settings } = toCopy(
      sql`select (date_part('epoch', e.occurred_at) * 1000)::bigint, e.log_id, ${CELLS}
        from ${fromWaf(zoneId, query, { after, limit: ROWS_PER_PART })}`,
    );
    const { copied, rows } = await runCancellable(database, signal, (_, client) =>
      runCopy(client, statement, query.clauses.length === 0 ? [...settings, IN_ORDER] : settings),
    );
    return { part: copied, end: rows === ROWS_PER_PART ? readLastLine(copied) : null };
  });
  // Postgres writes the next part during this.
  for await (const copied of parts) yield escapeCsvControls(finishCsvLines(copied));
}

type Setting = readonly [name: string, value: string];
/**
 * Without a filter the next part can be read from the primary key in order. Sorting the rest of the day would cost
 * twice as much.
 */
const IN_ORDER: Setting = ["enable_sort", "off"];

interface Copied {
  readonly copied: Buffer;
  readonly rows: number;
}

/** The format that `toMoment` writes. */
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * Returns the COPY statement and its settings. COPY takes no parameters. Numbers and moments are written into the
 * statement, so that the planner can choose partitions. Every other value becomes a setting of the transaction that
 * the statement reads by name, so no text of the caller becomes part of the statement.
 */
function toCopy(select: ReturnType<typeof sql>): { statement: string; settings: readonly Setting[] } {
  const { sql: text, params } = dialect.sqlToQuery(select);
  const settings: Setting[] = [];
  const named = text.replaceAll(/\$(\d+)(::(?:text|inet)\[\])?/g, (_, place: string, list?: string) => {
    const value: unknown = params[Number(place) - 1];
    if (Number.isSafeInteger(value)) return String(value);
    if (typeof value === "string" && MOMENT.test(value)) return `'${value}'`;
    const name = `longwatch.p${place}`;
    settings.push([name, toText(value)]);
    // The subquery reads the list once, not once per event. The second cast keeps `any` from treating the list as
    // rows.
    return list === undefined
      ? `current_setting('${name}')`
      : `(select current_setting('${name}')${list})${list}`;
  });
  return { statement: `copy (${named}) to stdout (format csv, null '${NO_NULL}')`, settings };
}

/** Returns the text that a cast in the statement reads. */
function toText(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  const items = value.map((item) => `"${String(item).replaceAll(/[\\"]/g, String.raw`\$&`)}"`);
  return `{${items.join(",")}}`;
}

async function runCopy(
  client: pg.PoolClient,
  statement: string,
  settings: readonly Setting[],
): Promise<Copied> {
  if (settings.length === 0) return collect(client, statement);
  await client.query("begin read only");
  try {
    await client.query(
      "select set_config(name, value, true) from unnest($1::text[], $2::text[]) s(name, value)",
      [settings.map(([name]) => name), settings.map(([, value]) => value)],
    );
    return await collect(client, statement);
  } finally {
    await client.query("rollback");
  }
}

async function collect(client: pg.PoolClient, statement: string): Promise<Copied> {
  const chunks: Buffer[] = [];
  const stream = client.query(copyTo(statement));
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return { copied: Buffer.concat(chunks), rows: stream.rowCount };
}
