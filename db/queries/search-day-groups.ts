import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { type GroupPage, readCellGroups } from "./search-cells.ts";
import { and, toClause } from "./search-condition.ts";
import { type CountedDay, cutOut } from "./search-days.ts";
import { compareGroups } from "./search-group-parts.ts";
import { type GroupQuery, SEARCH_COLUMNS } from "./search-query.ts";

interface Group {
  readonly key: readonly [string];
  total: number;
  first: number;
  last: number;
  /** Column -> text -> events. */
  readonly tallies: Map<string, Map<string, number>>;
}

type DayGroupRow = { value: string; total: number; first: number; last: number; tallies: Tallies };
type Tallies = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** The days of which a search's groups were made in advance: those by one dimension, about which alone is asked. */
export function daysOfGroups(
  { groupBy, clauses }: GroupQuery,
  days: readonly CountedDay[],
): readonly CountedDay[] {
  const [dimension] = groupBy;
  if (dimension === undefined || groupBy.length > 1) return [];
  if (!clauses.every(({ columns }) => columns.every((column) => column === dimension))) return [];
  return days.filter(({ dimensions }) => dimensions.includes(SEARCH_COLUMNS[dimension]));
}

/** A page of groups by one dimension: those of whole days as they were made in advance, the rest from events. */
export async function readDayGroups(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  days: readonly CountedDay[],
): Promise<GroupPage> {
  const groups = new Map<string, Group>();
  for (const row of await readRows(tx, zoneId, query, days)) {
    const group = meet(groups, row);
    for (const [kind, texts] of Object.entries(row.tallies)) {
      for (const [text, total] of Object.entries(texts)) addTally(group, kind, text, total);
    }
  }
  const spans = cutOut(query, days);
  if (spans.length > 0) {
    // Every group of the rest counts: which are on the page shows only when both are together.
    const every = { ...query, page: 0, pageSize: Number.MAX_SAFE_INTEGER };
    const rest = await readCellGroups(tx, zoneId, every, { days: [], spans });
    for (const { key, ...row } of rest.keys) meet(groups, { value: key[0] ?? "", ...row });
    for (const { at, kind, text, total } of rest.tallies) {
      const group = groups.get(rest.keys[at - 1]?.key[0] ?? "");
      if (group !== undefined) addTally(group, kind, text, total);
    }
  }
  return toPage([...groups.values()], query);
}

async function readRows(
  tx: Queryable,
  zoneId: number,
  { groupBy, clauses }: GroupQuery,
  days: readonly CountedDay[],
): Promise<DayGroupRow[]> {
  const [dimension] = groupBy;
  if (dimension === undefined) return [];
  const column = SEARCH_COLUMNS[dimension];
  const found = await tx.execute<DayGroupRow>(sql`
    select value, total, tallies, (extract(epoch from first_at) * 1000)::float8 as first,
      (extract(epoch from last_at) * 1000)::float8 as last
    from (select g.*, g.value as ${sql.raw(column)} from day_groups g
          where zone_id = ${zoneId} and dimension = ${column}
            and day = any(${sql.param(days.map(({ day }) => day))}::date[])) e
    where ${and([sql`true`, ...clauses.map(toClause)])}`);
  return found.rows;
}

function meet(groups: Map<string, Group>, row: Omit<DayGroupRow, "tallies">): Group {
  const { value, total, first, last } = row;
  const known = groups.get(value);
  if (known === undefined) {
    const group: Group = { key: [value], total, first, last, tallies: new Map() };
    groups.set(value, group);
    return group;
  }
  known.total += total;
  known.first = Math.min(known.first, first);
  known.last = Math.max(known.last, last);
  return known;
}

function addTally(group: Group, kind: string, text: string, total: number): void {
  const texts = group.tallies.get(kind);
  if (texts === undefined) group.tallies.set(kind, new Map([[text, total]]));
  else texts.set(text, (texts.get(text) ?? 0) + total);
}

function toPage(groups: Group[], { page, pageSize }: GroupQuery): GroupPage {
  const keys = groups.sort(compareGroups).slice(page * pageSize, (page + 1) * pageSize);
  const tallies = keys.flatMap((group, index) =>
    [...group.tallies].flatMap(([kind, texts]) =>
      Array.from(texts, ([text, total]) => ({ at: index + 1, kind, text, total })),
    ),
  );
  return { keys, total: groups.length, tallies };
}
