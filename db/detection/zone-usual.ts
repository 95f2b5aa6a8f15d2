import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { USUAL_DIMENSIONS } from "#model/kinds.ts";
import type { Span } from "#model/span.ts";
import { toUrlPartSql } from "#model/url-parts.ts";
import type { FirstUse, UsualValue } from "#model/usual-value.ts";
import { readFile } from "../archive/day-files.ts";
import type { Queryable } from "../client.ts";
import type { Duckdb } from "../duckdb/duckdb.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { wafEvents } from "../schema/waf-events.ts";
import { zoneUsual } from "../schema/zone-usual.ts";

const e = alias(wafEvents, "e");
const u = alias(zoneUsual, "u");

/** A value is usual once so many users had it at most, so more of a day change nothing. */
const MOST_USERS = 20;
/** Values of a dimension that are read of a day: those that most addresses had. An attacker may send a million. */
const MOST_VALUES = 5_000;

const PATH = toUrlPartSql("path", "url");
const USES = USUAL_DIMENSIONS.map((dimension) => {
  const user = dimension === "asn" ? "day" : "ip";
  return `select '${dimension}' as dimension, ${dimension} as value, ${user} as used_by, min(ms) as first_ms
    from e where ${dimension} <> '' and ${user} not in ('', 'erased') group by 2, 3`;
});
/**
 * Reads `e` with the columns ms, day, ip, asn, ja4 and path, in Postgres and in DuckDB. The first users of each value on each
 * day are enough: who is among the first users of all days is among those of its day. They come in the order of time.
 */
const FIRST_USES = `
  used as (${USES.join(" union all ")}),
  placed as (select *, row_number() over (partition by dimension, value order by first_ms, used_by) as place,
    count(*) over (partition by dimension, value) as users from used),
  ranked as (select *, dense_rank() over (partition by dimension order by users desc, value) as value_rank from placed
    where place <= ${MOST_USERS})
  select dimension, value, used_by as "user", first_ms as at from ranked where value_rank <= ${MOST_VALUES}
  order by first_ms`;

/** Returns the first uses of the values of a UTC day's events in Postgres, without the hours (since the epoch) `leftOut`. */
export async function readFirstUses(
  db: Queryable,
  zoneId: number,
  { from, to }: Span,
  leftOut: readonly number[],
): Promise<FirstUse[]> {
  const { rows } = await db.execute<{ [Key in keyof FirstUse]: FirstUse[Key] }>(sql`
    with e as (select ${epochMs(e.occurredAt)} as ms, (${e.occurredAt} at time zone 'UTC')::date::text as day, ${e.ip},
        ${e.asn}, ${e.ja4}, ${sql.raw(PATH)} as path
      from ${wafEvents} ${e} where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${new Date(from)}
        and ${e.occurredAt} < ${new Date(to)}
        and floor(extract(epoch from ${e.occurredAt}) / 3600) <> all(${sql.param([...leftOut])}::integer[])),
    ${sql.raw(FIRST_USES)}`);
  return rows;
}

/** Returns the same of the events file of an archive day. */
export async function readFirstUsesOfFile(
  duckdb: Duckdb,
  file: string,
  leftOut: readonly number[],
  signal: AbortSignal,
): Promise<FirstUse[]> {
  const hours = leftOut.map((hour) => Math.trunc(hour)).join(", ");
  const statement = `
    with e as (select epoch_ms(occurred_at)::double as ms, strftime(occurred_at, '%Y-%m-%d') as day, ip, asn, ja4, ${PATH} as path
      from ${readFile(file)} where not list_contains([${hours}]::integer[], (epoch_ms(occurred_at) // 3600000)::integer)),
    ${FIRST_USES}`;
  const maxRows = USUAL_DIMENSIONS.length * MOST_VALUES * MOST_USERS;
  const [rows = []] = await duckdb.run([{ sql: statement }], { signal, maxRows });
  return rows.map(([dimension, value, user, at]) => ({ dimension, value, user, at }) as FirstUse);
}

/** Makes these the usual values of a zone. A value that is usual already keeps its time. */
export async function storeUsual(db: Queryable, zoneId: number, found: readonly UsualValue[]): Promise<void> {
  const column = <T>(read: (one: UsualValue) => T) => sql.param(found.map(read));
  await db.execute(sql`
    with found as (select * from unnest(${column((one) => one.dimension)}::text[], ${column((one) => one.value)}::text[],
        ${column((one) => new Date(one.since))}::timestamptz[]) as f(dimension, value, since)),
      gone as (delete from ${zoneUsual} ${u} where ${u.zoneId} = ${zoneId} and not exists (
        select from found f where f.dimension = ${u.dimension} and f.value = ${u.value}))
    insert into ${zoneUsual} (${names(u.zoneId, u.dimension, u.value, u.since)})
    select ${zoneId}::integer, dimension, value, since from found order by dimension, value on conflict do nothing`);
}
