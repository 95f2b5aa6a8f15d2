import { type Column, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { toSnakeCase } from "drizzle-orm/casing";
import type { BuildAliasTable, PgTable } from "drizzle-orm/pg-core";

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
