import { type Column, type SQL, sql } from "drizzle-orm";

/** Returns the condition of a check constraint. The words stand in it as literals, because a constraint takes no parameters. */
export function isOneOf(column: Column, words: readonly (string | number)[]): SQL {
  const literals = words.map((word) => (typeof word === "number" ? String(word) : `'${word}'`));
  return sql`${column} in (${sql.raw(literals.join(", "))})`;
}
