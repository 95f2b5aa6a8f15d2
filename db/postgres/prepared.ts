import type { SQL } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import type pg from "pg";

/** A statement with a name, by which each connection parses and plans it once. */
export interface Prepared {
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
