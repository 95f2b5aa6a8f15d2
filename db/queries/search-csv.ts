import type { Readable } from "node:stream";
import { sql } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import { to as copyTo } from "pg-copy-streams";
import type { Database } from "../client.ts";
import { toCondition } from "./search-condition.ts";
import { type EventQuery, SEARCH_COLUMNS, type SearchDimension } from "./search-query.ts";

/** The order in which the platform names them. */
const DIMENSIONS: readonly SearchDimension[] = [
  "feature",
  "ruleId",
  "ip",
  "ja4",
  "ua",
  "url",
  "asn",
  "country",
  "action",
];
/** Characters at which a spreadsheet begins a formula, and those it skips before one: tab, CR, plus, minus, =, @. */
const FORMULA_STARTS = "9, 13, 43, 45, 61, 64";
/** Nothing is null here; COPY must have a word for it that no text is, since it quotes a text that is that word. */
const NO_NULL = "\u0001";

const HEADER = Buffer.from(`${["timestamp", "logId", ...DIMENSIONS].join(",")}\r\n`);

/**
 * Every event a query finds, newest first, as CSV (RFC 4180, CRLF) with a header: epoch ms, log id, the nine dimensions. With `guardFormulas` a text that a spreadsheet would compute has an apostrophe before it. Postgres writes
 * the lines: this is about as fast as COPY alone, in constant memory. Holds one connection until the end; a reader that
 * leaves early ends it. `timeoutMs` bounds the whole.
 */
export async function* streamCsv(
  { pool }: Pick<Database, "pool">,
  zoneId: number,
  query: EventQuery,
  { guardFormulas, timeoutMs }: { guardFormulas: boolean; timeoutMs: number },
): AsyncGenerator<Buffer, void, undefined> {
  const client = await pool.connect();
  let lines: Readable | null = null;
  let isOver = false;
  try {
    const { statement, settings } = toCopy(zoneId, query, guardFormulas);
    await client.query("begin isolation level repeatable read read only");
    await client.query("select set_config('statement_timeout', $1, true)", [String(timeoutMs)]);
    await client.query(
      "select set_config(name, value, true) from unnest($1::text[], $2::text[]) s(name, value)",
      [settings.map(([name]) => name), settings.map(([, value]) => value)],
    );
    lines = client.query(copyTo(statement));
    // Read or not: the end of a session that a reader left is told to the stream once more, after everyone has gone.
    lines.on("error", () => undefined);
    const toChunk = createLineEnder();
    yield HEADER;
    for await (const chunk of lines) yield toChunk(chunk as Buffer);
    await client.query("commit");
    isOver = true;
  } finally {
    lines?.destroy();
    // Closing the session is what ends a COPY that nobody reads any more.
    client.release(!isOver);
  }
}

/**
 * COPY takes no parameters. What would be one becomes a setting of the transaction, which the statement reads by its
 * name: no text of the caller's is ever part of a statement.
 */
function toCopy(zoneId: number, query: EventQuery, guardFormulas: boolean) {
  const select = sql`
    select (extract(epoch from e.occurred_at) * 1000)::bigint, e.log_id, ${sql.raw(
      DIMENSIONS.map((name) => toCell(SEARCH_COLUMNS[name], guardFormulas)).join(", "),
    )}
    from waf_events e where ${toCondition(zoneId, query)} order by e.occurred_at desc, e.log_id desc`;
  const { sql: text, params } = new PgDialect().sqlToQuery(select);
  const settings = params.map((value, index) => [`longwatch.p${index + 1}`, toText(value)] as const);
  const named = text.replaceAll(/\$(\d+)/g, "current_setting('longwatch.p$1')");
  return { statement: `copy (${named}) to stdout (format csv, null '${NO_NULL}')`, settings };
}

function toCell(column: string, guardFormulas: boolean): string {
  const text = `coalesce(e.${column}, '')`;
  return guardFormulas
    ? `case when ascii(${text}) in (${FORMULA_STARTS}) then '''' || ${text} else ${text} end`
    : text;
}

/** As text that a cast in the statement reads. */
function toText(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  const items = value.map((item) => `"${String(item).replaceAll(/[\\"]/g, String.raw`\$&`)}"`);
  return `{${items.join(",")}}`;
}

const QUOTE = 0x22;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** COPY ends lines in LF; an LF inside of quotes belongs to a text and stays. Carries over where quotes are open. */
function createLineEnder(): (chunk: Buffer) => Buffer {
  let isQuoted = false;
  return (chunk) => {
    const ends: number[] = [];
    let quote = chunk.indexOf(QUOTE);
    // From line to line, not byte by byte: few lines have quotes.
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) {
      while (quote !== -1 && quote < at) {
        isQuoted = !isQuoted;
        quote = chunk.indexOf(QUOTE, quote + 1);
      }
      if (!isQuoted) ends.push(at);
    }
    for (; quote !== -1; quote = chunk.indexOf(QUOTE, quote + 1)) isQuoted = !isQuoted;
    return endLines(chunk, ends);
  };
}

function endLines(chunk: Buffer, ends: readonly number[]): Buffer {
  const lines = Buffer.allocUnsafe(chunk.length + ends.length);
  let from = 0;
  let to = 0;
  for (const end of ends) {
    to += chunk.copy(lines, to, from, end);
    lines[to++] = CARRIAGE_RETURN;
    from = end;
  }
  chunk.copy(lines, to, from);
  return lines;
}
