import type pg from "pg";

/** A statement that each connection plans once; `$1` and so on are its parameters. Two of one name have one text. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** The rows as arrays: an object per row costs more than the rest of a small answer. */
export async function ask<Row extends unknown[]>(
  client: pg.PoolClient,
  { name, text }: Statement,
  values: readonly unknown[],
): Promise<Row[]> {
  const { rows } = await client.query<Row>({ name, text, values: [...values], rowMode: "array" });
  return rows;
}
