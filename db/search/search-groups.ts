import { type SQL, sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { type CountedGroups, type GroupPage, isCellular, readCellGroups } from "./search-cells.ts";
import { readCodedGroups } from "./search-coded-groups.ts";
import { toCondition } from "./search-condition.ts";
import { type GroupContext, toContexts } from "./search-contexts.ts";
import { readDayGroups } from "./search-day-groups.ts";
import { readCountedDays } from "./search-days.ts";
import {
  compareGroups,
  type GroupKey,
  type GroupTally,
  inCodeUnits,
  isOfGroup,
  keyColumns,
  keyNames,
  mayBeOfGroup,
  wantedKeys,
} from "./search-group-parts.ts";
import { memoryOf } from "./search-memory.ts";
import { MOST_ONE_BY_ONE, type OneByOne } from "./search-one-by-one.ts";
import type { GroupQuery } from "./search-query.ts";
import { readSparklines } from "./search-sparklines.ts";
import { inSearchTransaction } from "./search-transaction.ts";

interface FoundGroup {
  /** In the order of `groupBy`. */
  readonly key: Readonly<Record<string, string>>;
  readonly count: number;
  /** Epoch ms. */
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly context: GroupContext;
  /** Null where no buckets were asked for. */
  readonly sparkline: readonly number[] | null;
}

export interface FoundGroups {
  readonly groups: readonly FoundGroup[];
  /** Of all pages. */
  readonly total: number;
  /** Whether counts made in advance had a part in the answer. */
  readonly source: "roll-up" | "events";
}

/**
 * One page of groups: the largest first, those of one size by key, in UTF-16 code units. Beside counts made in advance
 * more than `most` events are counted by Postgres rather than read one by one; the answer is the same.
 */
export function searchGroups(
  database: Database,
  zoneId: number,
  query: GroupQuery,
  most: OneByOne = MOST_ONE_BY_ONE,
): Promise<FoundGroups> {
  const memory = memoryOf(database);
  return inSearchTransaction(database, async (tx, client) => {
    const days = query.isCoded ? await readCountedDays(tx, zoneId, query) : [];
    const read = query.isCountable ? readDayGroups : readCodedGroups;
    const counted =
      days.length > 0 ? await read(tx, { client, memory }, zoneId, query, { days, most }) : null;
    const page = counted ?? (await readFromEvents(tx, zoneId, query));
    return {
      groups: assembleGroups(query, page),
      total: page.total,
      source: counted === null ? "events" : "roll-up",
    };
  });
}

async function readFromEvents(tx: Queryable, zoneId: number, query: GroupQuery): Promise<GroupPage> {
  const { total, keys, tallies } = isCellular(query.groupBy)
    ? await readCellGroups(tx, zoneId, query, [query])
    : await readEventGroups(tx, toCondition(zoneId, query), query);
  const hasSparklines = query.buckets > 0 && keys.length > 0;
  const sparklines = hasSparklines ? await readSparklines(tx, zoneId, query, keys) : null;
  return { total, keys, contexts: toContexts(keys.length, tallies), sparklines };
}

/**
 * Groups by dimensions with many values: found first, and their contexts of the page's alone. Most groups are far too small
 * for the page: what puts equal ones in order is not made of them.
 */
async function readEventGroups(tx: Queryable, condition: SQL, query: GroupQuery): Promise<CountedGroups> {
  const order = query.groupBy.map((_, index) => inCodeUnits(sql.raw(`k${index}`)));
  const found = await tx.execute<{ key: string[] | null; total: number; first: number; last: number }>(sql`
    with groups as materialized (
      select ${keyColumns(query.groupBy)}, count(*) as total, min(e.occurred_at) as first, max(e.occurred_at) as last
      from waf_events e where ${condition} group by ${keyNames(query.groupBy)}),
    least as materialized (
      select total from groups order by total desc limit 1 offset ${(query.page + 1) * query.pageSize - 1})
    (select array[${keyNames(query.groupBy)}]::text[] as key, total::float8,
      (extract(epoch from first) * 1000)::float8 as first, (extract(epoch from last) * 1000)::float8 as last
    from groups where total >= coalesce((select total from least), 0) order by groups.total desc, ${sql.join(order, sql`, `)}
    limit ${query.pageSize} offset ${query.page * query.pageSize})
    union all select null, count(*)::float8, null, null from groups`);
  const keys = found.rows.flatMap(({ key, ...row }) => (key === null ? [] : [{ key, ...row }]));
  // A union keeps no order: what the page is made of was chosen by the same one.
  keys.sort(compareGroups);
  const total = found.rows.find(({ key }) => key === null)?.total ?? 0;
  return { keys, total, tallies: keys.length === 0 ? [] : await readTallies(tx, condition, query, keys) };
}

/** How often each of the groups has each text of the dimensions that its context is made of. */
async function readTallies(
  tx: Queryable,
  condition: SQL,
  { groupBy }: GroupQuery,
  keys: readonly GroupKey[],
): Promise<readonly GroupTally[]> {
  const kinds = ["country", "asn", "action", "feature", "rule_id"].map(
    (name) =>
      sql`select at, ${name} as kind, ${sql.raw(name)} as text, sum(total) as total from cells group by 1, 3`,
  );
  const found = await tx.execute<{ at: number; kind: string; text: string; total: number }>(sql`
    with cells as materialized (
      select w.at, coalesce(country, '') as country, coalesce(asn, '') as asn, coalesce(action, '') as action,
        coalesce(feature, '') as feature, coalesce(rule_id, '') as rule_id, count(*) as total
      from waf_events e join ${wantedKeys(groupBy, keys)} on ${isOfGroup(groupBy)}
      where ${condition} and ${mayBeOfGroup(groupBy, keys)} group by 1, 2, 3, 4, 5, 6)
    select at::integer as at, kind, text, total::float8 from (${sql.join(kinds, sql` union all `)}) tallies`);
  return found.rows;
}

function assembleGroups({ groupBy }: GroupQuery, { keys, contexts, sparklines }: GroupPage): FoundGroup[] {
  return keys.map(({ key, total, first, last }, index) => ({
    key: Object.fromEntries(groupBy.map((name, position) => [name, key[position] ?? ""])),
    count: total,
    firstSeen: first,
    lastSeen: last,
    context: contexts[index] as GroupContext,
    sparkline: sparklines?.[index] ?? null,
  }));
}
