/** Small parts of SQL that many queries share. */

import { type Column, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { toSnakeCase } from "drizzle-orm/casing";
import { type BuildAliasTable, customType, PgDialect, type PgTable } from "drizzle-orm/pg-core";
import type pg from "pg";

/**
 * Text compared byte by byte, whatever the database's locale is, so that Postgres, JavaScript and page tokens share
 * one order.
 */
export const bytewiseText = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' });

export const bytea = customType<{ data: Buffer }>({ dataType: () => "bytea" });

/** The table under any alias, for conditions that several statements share. */
export type Row<Table extends PgTable> = BuildAliasTable<Table, string>;

/**
 * Returns the columns' names without their table, as `insert`, `set` and `on conflict` require them. A column in a
 * template is written with its table otherwise.
 */
export function names(...columns: readonly Column[]): SQL {
  return join(columns.map(name));
}

/** Returns the assignments of an upsert that overwrite these columns with the values of the refused row. */
export function overwriting(...columns: readonly Column[]): SQL {
  return join(columns.map((column) => sql`${name(column)} = excluded.${name(column)}`));
}

/** Null where the column is nullable, or where the SQL's type says so. */
type Ms<Time> = Time extends Column
  ? Time["_"]["notNull"] extends true
    ? number
    : number | null
  : Time extends SQL<string | null>
    ? number | null
    : number;

/** Returns a time as epoch ms, because raw SQL returns times as text. */
export function epochMs<Time extends SQLWrapper>(time: Time): SQL<Ms<Time>> {
  return sql<Ms<Time>>`(extract(epoch from ${time}) * 1000)::float8`;
}

function name(column: Column) {
  return sql.identifier(toSnakeCase(column.name));
}

function join(terms: Parameters<typeof sql.join>[0]): SQL {
  return sql.join(terms, sql`, `);
}

/** Returns the condition of a check constraint. The words stand in it as literals, because a constraint takes no parameters. */
export function isOneOf(column: Column, words: readonly (string | number)[]): SQL {
  const literals = words.map((word) => (typeof word === "number" ? String(word) : `'${word}'`));
  return sql`${column} in (${sql.raw(literals.join(", "))})`;
}

/** A statement with a name, by which each connection parses and plans it once. */
interface Prepared {
  readonly name: string;
  readonly text: string;
}

const dialect = new PgDialect({ casing: "snake_case" });

/** Returns a statement of which every parameter is a placeholder. Values are given in the order of the placeholders. */
export function toPrepared(name: string, statement: SQL): Prepared {
  return { name, text: dialect.sqlToQuery(statement).sql };
}

/** Runs a statement of every tick, for which planning would take longer than running. */
export async function runPrepared<Row extends pg.QueryResultRow>(
  pool: Pick<pg.Pool, "query">,
  prepared: Prepared & { readonly values: unknown[] },
): Promise<Row[]> {
  return (await pool.query<Row>(prepared)).rows;
}
