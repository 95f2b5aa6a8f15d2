import { type SQL, sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { type GroupPage, isCellular, readCellGroups } from "./search-cells.ts";
import { toCondition } from "./search-condition.ts";
import { daysOfGroups, readDayGroups } from "./search-day-groups.ts";
import { type CountedDay, cutOut, readCountedDays } from "./search-days.ts";
import {
  compareGroups,
  type GroupKey,
  type GroupTally,
  inCodeUnits,
  isOfGroup,
  keyColumns,
  keyNames,
  wantedKeys,
} from "./search-group-parts.ts";
import type { GroupQuery } from "./search-query.ts";
import { readSparklines } from "./search-sparklines.ts";
import { inSearchTransaction } from "./search-transaction.ts";

/** The events of one group beside what they are grouped by. */
interface GroupContext {
  /** Of most of the group's events; of several the first, by UTF-16 code units. */
  readonly country: string;
  readonly asn: string;
  readonly blocked: number;
  readonly challenged: number;
  readonly logged: number;
  /** Sorted by UTF-16 code units, joined by commas. */
  readonly features: string;
  readonly ruleIds: string;
}

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

/** One page of groups: the largest first, those of one size by key, in UTF-16 code units. */
export function searchGroups(database: Database, zoneId: number, query: GroupQuery): Promise<FoundGroups> {
  return inSearchTransaction(database, async (tx) => {
    const days = query.isCountable ? await readCountedDays(tx, zoneId, query) : [];
    const { page, counted } = await readPage(tx, zoneId, query, days);
    const { keys, tallies, total } = page;
    const sparklines =
      query.buckets === 0 || keys.length === 0
        ? null
        : await readSparklines(tx, zoneId, query, { keys, days });
    const groups = assembleGroups(query, keys, tallies, sparklines);
    return { groups, total, source: counted > 0 ? "roll-up" : "events" };
  });
}

/** The page by the cheapest way there is, and how many days of it were counted in advance. */
async function readPage(tx: Queryable, zoneId: number, query: GroupQuery, days: readonly CountedDay[]) {
  if (!isCellular(query.groupBy)) {
    return { page: await readEventGroups(tx, toCondition(zoneId, query), query), counted: 0 };
  }
  const grouped = daysOfGroups(query, days);
  if (grouped.length > 0) {
    return { page: await readDayGroups(tx, zoneId, query, grouped), counted: grouped.length };
  }
  const usable = days.filter(({ hasCells }) => hasCells);
  const sources = { days: usable.map(({ day }) => day), spans: cutOut(query, usable) };
  return { page: await readCellGroups(tx, zoneId, query, sources), counted: usable.length };
}

/** Groups by dimensions with many values: found first, and their contexts of the page's alone. */
async function readEventGroups(tx: Queryable, condition: SQL, query: GroupQuery): Promise<GroupPage> {
  const order = query.groupBy.map((_, index) => inCodeUnits(sql.raw(`k${index}`)));
  const found = await tx.execute<{ key: string[] | null; total: number; first: number; last: number }>(sql`
    with groups as materialized (
      select ${keyColumns(query.groupBy)}, count(*) as total, min(e.occurred_at) as first, max(e.occurred_at) as last
      from waf_events e where ${condition} group by ${keyNames(query.groupBy)})
    (select array[${keyNames(query.groupBy)}]::text[] as key, total::float8,
      (extract(epoch from first) * 1000)::float8 as first, (extract(epoch from last) * 1000)::float8 as last
    from groups order by groups.total desc, ${sql.join(order, sql`, `)}
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
      where ${condition} group by 1, 2, 3, 4, 5, 6)
    select at::integer as at, kind, text, total::float8 from (${sql.join(kinds, sql` union all `)}) tallies`);
  return found.rows;
}

function assembleGroups(
  { groupBy }: GroupQuery,
  keys: readonly GroupKey[],
  tallies: readonly GroupTally[],
  sparklines: readonly (readonly number[])[] | null,
): FoundGroup[] {
  const counts = keys.map(() => new Map<string, Map<string, number>>());
  for (const { at, kind, text, total } of tallies) {
    const ofGroup = counts[at - 1];
    const ofKind = ofGroup?.get(kind) ?? new Map<string, number>();
    ofKind.set(text, total);
    ofGroup?.set(kind, ofKind);
  }
  return keys.map(({ key, total, first, last }, index) => ({
    key: Object.fromEntries(groupBy.map((name, position) => [name, key[position] ?? ""])),
    count: total,
    firstSeen: first,
    lastSeen: last,
    context: toContext(counts[index] ?? new Map()),
    sparkline: sparklines?.[index] ?? null,
  }));
}

function toContext(counts: ReadonlyMap<string, ReadonlyMap<string, number>>): GroupContext {
  const of = (kind: string) => counts.get(kind) ?? new Map<string, number>();
  return {
    country: mostCommon(of("country")),
    asn: mostCommon(of("asn")),
    blocked: of("action").get("block") ?? 0,
    challenged: of("action").get("challenge") ?? 0,
    logged: of("action").get("log") ?? 0,
    features: [...of("feature").keys()].sort().join(","),
    ruleIds: [...of("rule_id").keys()].sort().join(","),
  };
}

function mostCommon(counts: ReadonlyMap<string, number>): string {
  let most: readonly [text: string, count: number] = ["", 0];
  for (const [text, count] of counts) {
    if (count > most[1] || (count === most[1] && text < most[0])) most = [text, count];
  }
  return most[0];
}
