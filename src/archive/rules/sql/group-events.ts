/** Groups and counts events. */
import { columnOf, ZONE_COLUMN } from "#model/fields.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import { type EventSource, prepareSource, selectEvents } from "./event-source.ts";
import { duck, type Piece, raw } from "./to-condition.ts";

/** The columns of a group's context. */
const CONTEXT = ["feature", "rule_id", "asn", "country", "action"];

interface FoundGroup {
  /** Values in the order of `groupBy`, by the names that were asked for. */
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
  /** Number of rows or groups on all pages. */
  readonly total: number;
}

/** Returns the columns that a grouped search reads of each event. */
export function groupColumns({ groupBy }: Pick<SearchPlan, "groupBy">): string[] {
  return [...new Set(["occurred_at", ...CONTEXT, ...groupBy.map(columnOf)])];
}

/**
 * Returns the statements for one page of groups: the largest first, those of one size by key, in UTF-16 code units.
 * `readGroups` reads the rows of the last one.
 *
 * Events are counted by their keys alone, because there may be as many groups as events. The events of the page's groups are
 * then read again and counted by each column of the context, and by bucket, by itself: counting combinations of them takes
 * twice as long. Null becomes '' after the counting, because DuckDB groups a column that is read as it is twice as fast.
 */
export function groupEvents(source: EventSource, plan: SearchPlan): Piece[] {
  const { groupBy, page, pageSize, buckets, clauses } = plan;
  const keys = groupBy.map(columnOf);
  const names = keys.map((_, index) => `k${index}`);
  // The zone is a number, and a key is a text.
  const textOf = (key: string, prefix = "") =>
    `coalesce(${prefix}${key}${key === ZONE_COLUMN ? "::varchar" : ""}, '')`;
  const asNames = keys.map((key, index) => `${textOf(key)} as k${index}`).join(", ");
  const context = raw(CONTEXT.map((name) => `e.${name}`).join(", "));
  const isEventOfGroup = keys.map((key, index) => `${textOf(key, "e.")} = p.k${index}`).join(" and ");
  const sets = CONTEXT.map((name) => `(p.rank, e.${name})`);
  if (buckets > 0) sets.push("(p.rank, bucket)");
  const order = raw(`total desc, ${names.map(inCodeUnits).join(", ")}`);
  const counted = raw([...new Set(keys)].join(", "));
  // Without a test, reading a column again costs less than keeping it. With one, its result is worth keeping.
  const kept = raw(clauses.length > 0 ? "materialized" : "not materialized");
  return [
    ...prepareSource(source),
    duck`with events as ${kept} (${selectEvents(source, plan, groupColumns(plan), { keepsNulls: true })}),
      nullable as (select ${counted}, count(*) as n, min(occurred_at) as first_at, max(occurred_at) as last_at
        from events group by ${counted}),
      groups as materialized (select ${raw(asNames)}, sum(n)::bigint as total, min(first_at) as first_at,
        max(last_at) as last_at from nullable group by ${raw(names.join(", "))}),
      shown as (select * from groups order by ${order} limit ${pageSize} offset ${page * pageSize}),
      p as materialized (select *, row_number() over (order by ${order}) as rank from shown),
      own as materialized (select p.rank, ${context}, ${raw(bucketOf(plan))} as bucket, grouping(${context}) as omitted, count(*) as n
        from events e join p on ${raw(isEventOfGroup)} group by grouping sets (${raw(sets.join(", "))})),
      ${raw(["asn", "country"].map(mostCommon).join(", "))},
      ${raw(["feature", "rule_id"].map(allOf).join(", "))},
      actions as (select rank, sum(n) filter (text = 'block') as blocked, sum(n) filter (text = 'challenge') as challenged,
        sum(n) filter (text = 'log') as logged from ${raw(countsOf("action"))} group by rank),
      sparklines as (select rank, list([bucket, n]) as filled from own where omitted = ${BUCKETED} group by rank)
      select json_array((select count(*) from groups))
      union all
      select json_array(p.rank, [${raw(names.map((name) => `p.${name}`).join(", "))}], p.total, epoch_ms(p.first_at), epoch_ms(p.last_at),
        country_most.text, asn_most.text, coalesce(blocked, 0)::bigint, coalesce(challenged, 0)::bigint,
        coalesce(logged, 0)::bigint, feature_all.texts, rule_id_all.texts, sparklines.filled)
      from p join country_most using (rank) join asn_most using (rank) join feature_all using (rank) join rule_id_all using (rank)
        join actions using (rank) left join sparklines using (rank)`,
  ];
}

/** `grouping` sets a bit for each column of the context that is left out; the last one's is 1. Buckets leave out all of them. */
const BUCKETED = 2 ** CONTEXT.length - 1;

/** How often each value of a column is in each group of the page. */
function countsOf(column: string): string {
  const omitted = BUCKETED - 2 ** (CONTEXT.length - 1 - CONTEXT.indexOf(column));
  return `(select rank, coalesce(${column}, '') as text, sum(n) as n from own where omitted = ${omitted} group by all)`;
}

function mostCommon(column: string): string {
  return `${column}_most as (select rank, arg_max(text, (n, -place)) as text from (
    select *, row_number() over (order by ${inCodeUnits("text")}) as place from ${countsOf(column)}) group by rank)`;
}

function allOf(column: string): string {
  return `${column}_all as (select rank, string_agg(text, ',' order by ${inCodeUnits("text")}) as texts
    from ${countsOf(column)} group by rank)`;
}

/** Bucket i covers [from + i*width, from + (i+1)*width) with width = (to - from) / buckets, in whole numbers. */
function bucketOf({ bucketsFrom, to, buckets }: SearchPlan): string {
  if (buckets === 0) return "null::bigint";
  const span = BigInt(to) - BigInt(bucketsFrom);
  const type = span * BigInt(buckets) < 2n ** 62n && BigInt(bucketsFrom) >= 0n ? "bigint" : "hugeint";
  return `((epoch_ms(e.occurred_at)::${type} - ${BigInt(bucketsFrom)}::${type}) * ${buckets}::${type} // ${span}::${type})::bigint`;
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
export function readGroups(rows: readonly string[], { groupNames, buckets }: SearchPlan): FoundGroups {
  const read = rows.map((row) => JSON.parse(row) as GroupRow | [total: number]);
  const [[total] = [0]] = read.filter((row): row is [number] => row.length === 1);
  const groups = read.filter((row): row is GroupRow => row.length > 1).sort(([one], [other]) => one - other);
  return { total, groups: groups.map((row) => toGroup(row, groupNames, buckets)) };
}

function toGroup(row: GroupRow, groupNames: readonly string[], buckets: number): FoundGroup {
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
    key: Object.fromEntries(groupNames.map((name, index) => [name, key[index] ?? ""])),
    count,
    firstSeen,
    lastSeen,
    context: { country, asn, blocked, challenged, logged, features, ruleIds },
    sparkline: buckets === 0 ? null : sparkline,
  };
}

/**
 * Returns SQL that orders a text as JavaScript does, by UTF-16 code units. DuckDB compares bytes of UTF-8, which is the
 * same order but for characters beyond the first 65,536: UTF-16 writes them with units between U+D7FF and U+E000. With
 * U+D7FF in front they are at that place.
 */
function inCodeUnits(text: string): string {
  return `case when strlen(${text}) = length(${text}) then ${text}
    else regexp_replace(${text}, '([\\x{10000}-\\x{10FFFF}])', '\u{D7FF}\\1', 'g') end`;
}
