import type { SQL } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import type pg from "pg";
import { type CopyToStreamQuery, to as copyTo } from "pg-copy-streams";

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
