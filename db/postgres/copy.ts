/** Rows as text of `copy`: out of the database, and into it. */

import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { SQL } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import type pg from "pg";
import { type CopyToStreamQuery, to as copyTo } from "pg-copy-streams";
import { readSqlState } from "#lib/errors.ts";
import { MINUTE_MS } from "#lib/units.ts";

type Setting = readonly [name: string, value: string];

const dialect = new PgDialect({ casing: "snake_case" });
/** The format that `momentOf` writes. */
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * Runs `copy (select) to stdout` with these options. The connection must be in a transaction. COPY takes no parameters:
 * numbers and moments are written into the statement, so that the planner can choose partitions. Every other value
 * becomes a setting of the transaction that the statement reads by name, so no text of the caller becomes part of the
 * statement.
 */
export async function copyQuery(
  client: pg.PoolClient,
  select: SQL,
  options: string,
): Promise<CopyToStreamQuery> {
  const { text, settings } = nameValues(select);
  if (settings.length > 0) {
    await client.query(
      "select set_config(name, value, true) from unnest($1::text[], $2::text[]) s(name, value)",
      [settings.map(([name]) => name), settings.map(([, value]) => value)],
    );
  }
  return client.query(copyTo(`copy (${text}) to stdout (${options})`));
}

function nameValues(select: SQL): { text: string; settings: readonly Setting[] } {
  const { sql, params } = dialect.sqlToQuery(select);
  const settings: Setting[] = [];
  const text = sql.replaceAll(/\$(\d+)(::(?:text|inet)\[\])?/g, (_, place: string, list?: string) => {
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
  return { text, settings };
}

/** Returns the text that a cast in the statement reads. */
function toText(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  const items = value.map((item) => `"${String(item).replaceAll(/[\\"]/g, String.raw`\$&`)}"`);
  return `{${items.join(",")}}`;
}

/**
 * Writes a COPY's output into a file, and returns the number of rows. If the file cannot be written, the connection is
 * closed: a COPY whose stream has no reader never ends, and every later statement would wait for it.
 */
export async function copyToFile(
  client: pg.PoolClient,
  stream: CopyToStreamQuery,
  file: string,
): Promise<number> {
  try {
    await pipeline(stream, createWriteStream(file));
  } catch (thrown) {
    // An error of the server has ended the COPY, and the connection takes the next statement.
    if (readSqlState(thrown) === null) closeConnection(client);
    throw thrown;
  }
  // The stream ends with the last row. The number comes in a later message, and this statement runs after that one.
  await client.query("");
  return stream.rowCount;
}

/** Yields a COPY's output. The connection is closed if the reader leaves before the end. */
export async function* readCopy(
  client: pg.PoolClient,
  stream: CopyToStreamQuery,
): AsyncGenerator<Buffer, void, undefined> {
  let isRead = false;
  try {
    for await (const chunk of stream) yield chunk as Buffer;
    isRead = true;
  } finally {
    if (!isRead) closeConnection(client);
  }
}

/** The server ends the session, and with it the transaction. */
function closeConnection(client: pg.PoolClient): void {
  const { connection } = client as pg.PoolClient & { connection: { stream: { destroy(): void } } };
  connection.stream.destroy();
}

/** A value of a row to be copied. Times go through `createTimeWriter`. */
type CopyValue = string | number | null;

const ESCAPED = /[\\\n\r\t]/;
const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Returns one field of COPY's text format (PostgreSQL manual, COPY, "Text Format"). The text must not hold a NUL. */
export function toCopyField(value: CopyValue): string {
  if (value === null) return "\\N";
  if (typeof value === "number") return String(value);
  return ESCAPED.test(value) ? value.replace(/[\\\n\r\t]/g, (char) => ESCAPES[char] ?? char) : value;
}

/**
 * Returns a function that writes epoch milliseconds as timestamps for COPY. It is fast for times of the same minute.
 */
export function createTimeWriter(): (atMs: number) => string {
  let minute = Number.NaN;
  let prefix = "";
  return (atMs) => {
    const rest = atMs % MINUTE_MS;
    if (atMs - rest !== minute) {
      minute = atMs - rest;
      prefix = new Date(minute).toISOString().slice(0, -"00.000Z".length);
    }
    return `${prefix}${String(rest / 1_000)}Z`;
  };
}
