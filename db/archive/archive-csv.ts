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

/** A part is a few megabytes and read in tens of milliseconds; two or three are held. */
const ROWS_PER_PART = 12_000;
const COLUMNS = ["feature", "rule_id", "ip", "ja4", "ua", "url", "asn", "country", "action"];
/** What `toCsvLine` guards against: tab, LF, CR, + - = @ and the full-width forms of the last four. */
const FORMULA_STARTS = "9, 10, 13, 43, 45, 61, 64, 65291, 65293, 65309, 65312";
/** Nothing is null here; COPY must have a word for it that no text is, since it quotes a text that is that word. */
const NO_NULL = "\u0001";

const CELLS = sql.raw(
  COLUMNS.map((column) => {
    const text = `coalesce(e.${column}, '')`;
    return `case when ascii(${text}) in (${FORMULA_STARTS}) then '''' || ${text} else ${text} end`;
  }).join(", "),
);
const dialect = new PgDialect();

/**
 * Every event a query finds, in the order of `fromWaf`, as the lines of CSV that `toCsvLine` would write, part by part.
 * Postgres writes them: this is nearly as fast as COPY alone. The signal stops the statement under way.
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
  // While Postgres writes the next part.
  for await (const copied of parts) yield escapeCsvControls(finishCsvLines(copied));
}

type Setting = readonly [name: string, value: string];
/** Of everything there is, the next part lies in the primary key in order; to sort the rest of the day costs twice as much. */
const IN_ORDER: Setting = ["enable_sort", "off"];

interface Copied {
  readonly copied: Buffer;
  readonly rows: number;
}

/** As `toMoment` writes it. */
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * COPY takes no parameters. Numbers and moments are written out, for the planner to choose partitions by; any other
 * becomes a setting of the transaction, which the statement reads by its name: no text of the caller's is ever part of a
 * statement.
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
    // A subquery reads the list once, not once per event. The second cast keeps `any` from taking it for rows.
    return list === undefined
      ? `current_setting('${name}')`
      : `(select current_setting('${name}')${list})${list}`;
  });
  return { statement: `copy (${named}) to stdout (format csv, null '${NO_NULL}')`, settings };
}

/** As text that a cast in the statement reads. */
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
