import { sql } from "drizzle-orm";
import type { Span } from "../../src/model/span.ts";
import type { Queryable } from "../client.ts";
import { toCondition } from "./search-condition.ts";
import type { GroupContext } from "./search-contexts.ts";
import { type GroupKey, type GroupTally, inCodeUnits } from "./search-group-parts.ts";
import { type GroupQuery, SEARCH_COLUMNS, type SearchDimension } from "./search-query.ts";
import { TALLIED_COLUMNS } from "./tally-day.ts";

export interface GroupPage {
  readonly total: number;
  readonly keys: readonly GroupKey[];
  /** Of each of the keys. */
  readonly contexts: readonly GroupContext[];
  /** Null where no buckets were asked for. */
  readonly sparklines: readonly (readonly number[])[] | null;
}

/** A page of groups as SQL counts them. */
export interface CountedGroups extends Pick<GroupPage, "total" | "keys"> {
  readonly tallies: readonly GroupTally[];
}

/** Whether there are so few combinations that they are counted first and grouped afterwards. */
export function isCellular(groupBy: readonly SearchDimension[]): boolean {
  return groupBy.every((name) => TALLIED_COLUMNS.some((column) => column === SEARCH_COLUMNS[name]));
}

type PageRow = {
  kind: string;
  at: number;
  key: string[];
  text: string;
  total: number;
  first: number;
  last: number;
};

/** A page of groups with their tallies, from one reading of the events. `groupBy` must be cellular. */
export async function readCellGroups(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  spans: readonly Span[],
): Promise<CountedGroups> {
  const keys = query.groupBy.map((name) => SEARCH_COLUMNS[name]);
  const keyList = sql.raw(keys.map((column, index) => `c.${column} as k${index}`).join(", "));
  const keyNames = sql.raw(keys.map((_, index) => `k${index}`).join(", "));
  const order = sql.join(
    keys.map((_, index) => inCodeUnits(sql.raw(`k${index}`))),
    sql`, `,
  );
  const isOfGroup = sql.raw(keys.map((column, index) => `c.${column} = p.k${index}`).join(" and "));
  const tallies = TALLIED_COLUMNS.map(
    (column) => sql`select ${column}, p.at, null, c.${sql.raw(column)}, sum(c.total), null, null
      from page p join cells c on ${isOfGroup} group by p.at, c.${sql.raw(column)}`,
  );
  const texts = sql.raw(TALLIED_COLUMNS.map((column) => `coalesce(e.${column}, '') as ${column}`).join(", "));
  const found = await tx.execute<PageRow>(sql`
    with cells as materialized (
      select ${texts}, count(*) as total, min(e.occurred_at) as first_at, max(e.occurred_at) as last_at
      from waf_events e where ${toCondition(zoneId, query, spans)} group by 1, 2, 3, 4, 5),
    groups as materialized (
      select ${keyList}, sum(c.total) as total, min(c.first_at) as first_at, max(c.last_at) as last_at
      from cells c group by ${keyNames}),
    page as materialized (
      select *, row_number() over (order by total desc, ${order}) as at from groups
      order by at limit ${query.pageSize} offset ${query.page * query.pageSize})
    select kind, at::float8, key, text, total::float8, first, last from (
      select 'key' as kind, at, array[${keyNames}]::text[] as key, null as text, total,
        (extract(epoch from first_at) * 1000)::float8 as first, (extract(epoch from last_at) * 1000)::float8 as last
      from page
      union all select 'groups', 0, null, null, count(*), null, null from groups
      union all ${sql.join(tallies, sql` union all `)}) answer`);
  return toPage(found.rows, query);
}

function toPage(rows: readonly PageRow[], { page, pageSize }: GroupQuery): CountedGroups {
  const before = page * pageSize;
  const keys = rows.filter(({ kind }) => kind === "key").sort((one, other) => one.at - other.at);
  return {
    total: rows.find(({ kind }) => kind === "groups")?.total ?? 0,
    keys: keys.map(({ key, total, first, last }) => ({ key, total, first, last })),
    tallies: rows
      .filter(({ kind }) => kind !== "key" && kind !== "groups")
      .map(({ at, kind, text, total }) => ({ at: at - before, kind, text, total })),
  };
}
