/**
 * A piece of SQL for DuckDB. Every text of a caller is a value: `values` has them in the order of the `?` in `sql`. The
 * constants of this folder contain a `?` within quotes only.
 */
export interface Piece {
  readonly sql: string;
  readonly values: readonly string[];
}

/** A text that the statement contains as a parameter. */
export function bound(text: string): Piece {
  return { sql: "?", values: [text] };
}

/** A constant of this program, such as a column. */
export function raw(sql: string): Piece {
  return { sql, values: [] };
}

/** Joins a template and its pieces. A number is written as it is. */
export function duck(template: TemplateStringsArray, ...parts: readonly (Piece | number)[]): Piece {
  const pieces = parts.map((part) => (typeof part === "number" ? raw(writeInteger(part)) : part));
  return {
    sql: template.reduce((sql, text, index) => `${sql}${pieces[index - 1]?.sql ?? ""}${text}`),
    values: pieces.flatMap(({ values }) => values),
  };
}

export function join(pieces: readonly Piece[], separator: string): Piece {
  return {
    sql: pieces.map(({ sql }) => sql).join(separator),
    values: pieces.flatMap(({ values }) => values),
  };
}

/** Returns `true` for an empty list. */
export function and(conditions: readonly Piece[]): Piece {
  return conditions.length === 0 ? raw("true") : duck`(${join(conditions, " and ")})`;
}

/** Returns `false` for an empty list: no test means no match. */
export function or(conditions: readonly Piece[]): Piece {
  return conditions.length === 0 ? raw("false") : duck`(${join(conditions, " or ")})`;
}

function writeInteger(value: number): string {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not a whole number`);
  return String(value);
}
