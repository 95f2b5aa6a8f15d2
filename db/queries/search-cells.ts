import { type SQL, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { and, type Span, toClause, toCondition } from "./search-condition.ts";
import { type GroupKey, type GroupTally, inCodeUnits } from "./search-group-parts.ts";
import { type GroupQuery, SEARCH_COLUMNS, type SearchDimension } from "./search-query.ts";

/** What an event cube tells apart: few enough combinations to be counted first and grouped afterwards. */
const CELL_COLUMNS = ["feature", "rule_id", "asn", "country", "action"] as const;

/** Where counts come from: whole days that were counted in advance, and events. */
export interface CellSources {
  /** UTC, `yyyy-mm-dd`. */
  readonly days: readonly string[];
  readonly spans: readonly Span[];
}

export interface GroupPage {
  readonly total: number;
  readonly keys: readonly GroupKey[];
  readonly tallies: readonly GroupTally[];
}

export function isCellular(groupBy: readonly SearchDimension[]): boolean {
  return groupBy.every((name) => CELL_COLUMNS.some((column) => column === SEARCH_COLUMNS[name]));
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

/** A page of groups with their contexts, from one reading of the events and cubes. `groupBy` must be cellular. */
export async function readCellGroups(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  sources: CellSources,
): Promise<GroupPage> {
  const keys = query.groupBy.map((name) => SEARCH_COLUMNS[name]);
  const keyList = sql.raw(keys.map((column, index) => `c.${column} as k${index}`).join(", "));
  const keyNames = sql.raw(keys.map((_, index) => `k${index}`).join(", "));
  const order = sql.join(
    keys.map((_, index) => inCodeUnits(sql.raw(`k${index}`))),
    sql`, `,
  );
  const isOfGroup = sql.raw(keys.map((column, index) => `c.${column} = p.k${index}`).join(" and "));
  const tallies = CELL_COLUMNS.map(
    (column) => sql`select ${column}, p.at, null, c.${sql.raw(column)}, sum(c.total), null, null
      from page p join cells c on ${isOfGroup} group by p.at, c.${sql.raw(column)}`,
  );
  const found = await tx.execute<PageRow>(sql`
    with cells as materialized (
      select ${sql.raw(CELL_COLUMNS.join(", "))}, sum(total) as total, min(first_at) as first_at, max(last_at) as last_at
      from (${toCells(zoneId, query, sources)}) s group by 1, 2, 3, 4, 5),
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

function toCells(zoneId: number, query: GroupQuery, { days, spans }: CellSources): SQL {
  const texts = sql.raw(CELL_COLUMNS.map((column) => `coalesce(e.${column}, '') as ${column}`).join(", "));
  const events = sql`
    select ${texts}, count(*) as total, min(e.occurred_at) as first_at, max(e.occurred_at) as last_at
    from waf_events e where ${toCondition(zoneId, query, spans)} group by 1, 2, 3, 4, 5`;
  if (days.length === 0) return events;
  const isAsked = and([
    sql`e.zone_id = ${zoneId}`,
    sql`e.day = any(${sql.param(days)}::date[])`,
    ...query.clauses.map(toClause),
  ]);
  const counted = sql`
    select ${sql.raw(CELL_COLUMNS.map((column) => `e.${column}`).join(", "))}, sum(e.total) as total,
      min(e.first_at) as first_at, max(e.last_at) as last_at
    from event_cubes e where ${isAsked} group by 1, 2, 3, 4, 5`;
  return spans.length === 0 ? counted : sql`${counted} union all ${events}`;
}

function toPage(rows: readonly PageRow[], { page, pageSize }: GroupQuery): GroupPage {
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
