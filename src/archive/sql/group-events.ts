import { SEARCH_COLUMNS } from "../../model/search-columns.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import type { Dimension } from "../query/search.ts";
import { inCodeUnits } from "./code-unit-order.ts";
import { type EventSource, prepareSource, selectEvents } from "./event-source.ts";
import { duck, type Piece, raw } from "./piece.ts";

/** The dimensions of a group's context. Each has few values, so their combinations are few. */
const CONTEXT = ["feature", "rule_id", "asn", "country", "action"];

interface FoundGroup {
  /** In the order of `groupBy`. */
  readonly key: Readonly<Record<string, string>>;
  readonly count: number;
  /** Epoch ms. */
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly context: {
    /** The value of most of the group's events; of several such values the first by UTF-16 code units. */
    readonly country: string;
    readonly asn: string;
    readonly blocked: number;
    readonly challenged: number;
    readonly logged: number;
    /** Sorted by UTF-16 code units, joined by commas. */
    readonly features: string;
    readonly ruleIds: string;
  };
  /** Null where no buckets were asked for. */
  readonly sparkline: readonly number[] | null;
}

export interface FoundGroups {
  readonly groups: readonly FoundGroup[];
  /** Of all pages. */
  readonly total: number;
}

/** Returns the columns that a grouped search reads of each event. */
export function groupColumns({ groupBy }: Pick<SearchPlan, "groupBy">): string[] {
  return [...new Set(["occurred_at", ...CONTEXT, ...groupBy.map((name) => SEARCH_COLUMNS[name])])];
}

/**
 * Returns the statements for one page of groups: the largest first, those of one size by key, in UTF-16 code units.
 * `readGroups` reads the rows of the last one.
 *
 * Events are first counted by the combinations of a few columns' values (`cells`): those of the context, if the groups
 * are made of them. Then cells are all that is needed. Otherwise, there may be as many groups as events: cells have the
 * keys only, and the events of the page's groups are read again for their context. Null becomes '' after the counting,
 * because DuckDB groups a column that is read as it is twice as fast.
 */
export function groupEvents(source: EventSource, plan: SearchPlan): Piece[] {
  const { groupBy, page, pageSize, buckets, clauses } = plan;
  const keys = groupBy.map((name) => SEARCH_COLUMNS[name]);
  const isCellular = keys.every((key) => CONTEXT.includes(key));
  const names = keys.map((_, index) => `k${index}`);
  const asNames = keys.map((key, index) => `${key} as k${index}`).join(", ");
  const isCellOfGroup = keys.map((key, index) => `c.${key} = p.k${index}`).join(" and ");
  const isEventOfGroup = keys.map((key, index) => `coalesce(e.${key}, '') = p.k${index}`).join(" and ");
  const order = names.map(inCodeUnits).join(", ");
  const counted = isCellular ? CONTEXT : [...new Set(keys)];
  const eventContext = CONTEXT.map((name) => `e.${name}`);
  // Without a test, reading a column again costs less than keeping it. With one, its result is worth keeping.
  const kept = raw(clauses.length > 0 ? "materialized" : "not materialized");
  return [
    ...prepareSource(source),
    duck`with events as ${kept} (${selectEvents(source, plan, groupColumns(plan), { keepsNulls: true })}),
      nullable as (select ${raw(counted.join(", "))}, count(*) as n, min(occurred_at) as first_at, max(occurred_at) as last_at
        from events group by ${raw(counted.join(", "))}),
      cells as ${raw(isCellular ? "materialized" : "not materialized")} (
        select ${raw(withoutNull(counted, ""))}, n, first_at, last_at from nullable),
      groups as materialized (select ${raw(asNames)}, sum(n)::bigint as total, min(first_at) as first_at,
        max(last_at) as last_at from cells group by ${raw(names.join(", "))}),
      p as materialized (select *, row_number() over (order by total desc, ${raw(order)}) as rank from groups
        order by total desc, ${raw(order)} limit ${pageSize} offset ${page * pageSize}),
      own as materialized (${raw(
        isCellular
          ? `select p.rank, c.* from p join cells c on ${isCellOfGroup}`
          : `select p.rank, ${withoutNull(CONTEXT, "e.")}, count(*) as n
             from events e join p on ${isEventOfGroup} group by ${["p.rank", ...eventContext].join(", ")}`,
      )}),
      ${raw(CONTEXT.slice(2, 4).map(mostCommon).join(", "))},
      ${raw(CONTEXT.slice(0, 2).map(allOf).join(", "))},
      actions as (select rank, sum(n) filter (action = 'block') as blocked, sum(n) filter (action = 'challenge') as challenged,
        sum(n) filter (action = 'log') as logged from own group by rank),
      ${raw(buckets === 0 ? "sparklines as (select null as rank, null as filled where false)" : sparklines(plan, isEventOfGroup))}
      select json_array((select count(*) from groups))
      union all
      select json_array(p.rank, [${raw(names.map((name) => `p.${name}`).join(", "))}], p.total, epoch_ms(p.first_at), epoch_ms(p.last_at),
        country_most.text, asn_most.text, coalesce(blocked, 0)::bigint, coalesce(challenged, 0)::bigint,
        coalesce(logged, 0)::bigint, feature_all.texts, rule_id_all.texts, sparklines.filled)
      from p join country_most using (rank) join asn_most using (rank) join feature_all using (rank) join rule_id_all using (rank)
        join actions using (rank) left join sparklines using (rank)`,
  ];
}

function withoutNull(columns: readonly string[], table: string): string {
  return columns.map((column) => `coalesce(${table}${column}, '') as ${column}`).join(", ");
}

function mostCommon(column: string): string {
  return `${column}_most as (select rank, arg_max(text, (n, -place)) as text from (
    select rank, ${column} as text, sum(n) as n, row_number() over (order by ${inCodeUnits(column)}) as place
    from own group by rank, ${column}) group by rank)`;
}

function allOf(column: string): string {
  return `${column}_all as (select rank, string_agg(text, ',' order by ${inCodeUnits("text")}) as texts
    from (select distinct rank, ${column} as text from own) group by rank)`;
}

/** Bucket i covers [from + i*width, from + (i+1)*width) with width = (to - from) / buckets, in whole numbers. */
function sparklines({ bucketsFrom, to, buckets }: SearchPlan, isOfGroup: string): string {
  const span = BigInt(to) - BigInt(bucketsFrom);
  const type = span * BigInt(buckets) < 2n ** 62n && BigInt(bucketsFrom) >= 0n ? "bigint" : "hugeint";
  const bucket = `(epoch_ms(e.occurred_at)::${type} - ${BigInt(bucketsFrom)}::${type}) * ${buckets}::${type} // ${span}::${type}`;
  return `sparklines as (select rank, list([bucket, n]) as filled from (
    select p.rank, (${bucket})::bigint as bucket, count(*) as n from events e join p on ${isOfGroup}
    group by p.rank, bucket) group by rank)`;
}

type GroupRow = [
  at: number,
  key: string[],
  count: number,
  firstSeen: number,
  lastSeen: number,
  country: string,
  asn: string,
  blocked: number,
  challenged: number,
  logged: number,
  features: string,
  ruleIds: string,
  filled: [bucket: number, events: number][] | null,
];

/** Reads the rows of the last statement of `groupEvents`, each one a JSON array. */
export function readGroups(rows: readonly string[], { groupBy, buckets }: SearchPlan): FoundGroups {
  const read = rows.map((row) => JSON.parse(row) as GroupRow | [total: number]);
  const [[total] = [0]] = read.filter((row): row is [number] => row.length === 1);
  const groups = read.filter((row): row is GroupRow => row.length > 1).sort(([one], [other]) => one - other);
  return { total, groups: groups.map((row) => toGroup(row, groupBy, buckets)) };
}

function toGroup(row: GroupRow, groupBy: readonly Dimension[], buckets: number): FoundGroup {
  const [
    ,
    key,
    count,
    firstSeen,
    lastSeen,
    country,
    asn,
    blocked,
    challenged,
    logged,
    features,
    ruleIds,
    filled,
  ] = row;
  const sparkline = Array.from({ length: buckets }, () => 0);
  for (const [bucket, events] of filled ?? []) sparkline[bucket] = events;
  return {
    key: Object.fromEntries(groupBy.map((name, index) => [name, key[index] ?? ""])),
    count,
    firstSeen,
    lastSeen,
    context: { country, asn, blocked, challenged, logged, features, ruleIds },
    sparkline: buckets === 0 ? null : sparkline,
  };
}
