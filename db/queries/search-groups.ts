import { type SQL, sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { toCondition } from "./search-condition.ts";
import { type GroupQuery, SEARCH_COLUMNS, type SearchDimension } from "./search-query.ts";
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

export interface FoundGroup {
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

type KeyRow = { key: string[]; total: number; first: number; last: number; groups: number };
type TallyRow = { at: number; kind: string; text: string; total: number };
type BucketRow = { at: number; bucket: number; total: number };

/** One page of groups: the largest first, those of one size by key, in UTF-16 code units. */
export function searchGroups(database: Database, zoneId: number, query: GroupQuery): Promise<FoundGroups> {
  return inSearchTransaction(database, async (tx) => {
    const condition = toCondition(zoneId, query);
    const keys = await readKeys(tx, condition, query);
    const total = keys[0]?.groups ?? (query.page === 0 ? 0 : await countGroups(tx, condition, query));
    if (keys.length === 0) return { groups: [], total, source: "events" };
    const tallies = await readTallies(tx, condition, query, keys);
    const buckets = query.buckets === 0 ? [] : await readBuckets(tx, condition, query, keys);
    return { groups: assembleGroups(query, keys, tallies, buckets), total, source: "events" };
  });
}

async function readKeys(tx: Queryable, condition: SQL, query: GroupQuery): Promise<KeyRow[]> {
  const keys = keyColumns(query.groupBy);
  const order = query.groupBy.map((_, index) => inCodeUnits(sql.raw(`k${index}`)));
  const found = await tx.execute<KeyRow>(sql`
    select array[${names(query.groupBy)}]::text[] as key, total::float8, groups::float8,
      (extract(epoch from first) * 1000)::float8 as first, (extract(epoch from last) * 1000)::float8 as last
    from (
      select ${keys}, count(*) as total, min(e.occurred_at) as first, max(e.occurred_at) as last,
        count(*) over () as groups
      from waf_events e where ${condition} group by ${ordinals(query.groupBy)}) g
    order by g.total desc, ${sql.join(order, sql`, `)}
    limit ${query.pageSize} offset ${query.page * query.pageSize}`);
  return found.rows;
}

async function countGroups(tx: Queryable, condition: SQL, { groupBy }: GroupQuery): Promise<number> {
  const found = await tx.execute<{ total: number }>(sql`
    select count(*)::float8 as total from (
      select ${keyColumns(groupBy)} from waf_events e where ${condition} group by ${ordinals(groupBy)}) g`);
  return found.rows[0]?.total ?? 0;
}

/** How often each of the groups has each text of the dimensions that its context is made of. */
async function readTallies(
  tx: Queryable,
  condition: SQL,
  { groupBy }: GroupQuery,
  keys: readonly KeyRow[],
): Promise<TallyRow[]> {
  const found = await tx.execute<TallyRow>(sql`
    with cells as materialized (
      select w.at, coalesce(country, '') as country, coalesce(asn, '') as asn, coalesce(action, '') as action,
        coalesce(feature, '') as feature, coalesce(rule_id, '') as rule_id, count(*) as total
      from waf_events e join ${wanted(groupBy, keys)} on ${matches(groupBy)}
      where ${condition} group by 1, 2, 3, 4, 5, 6),
    tallies as (${sql.join(
      ["country", "asn", "action", "feature", "rule_id"].map(
        (name) =>
          sql`select at, ${name} as kind, ${sql.raw(name)} as text, sum(total) as total from cells group by 1, 3`,
      ),
      sql` union all `,
    )})
    select at, kind, text, total::float8 from tallies`);
  return found.rows;
}

async function readBuckets(
  tx: Queryable,
  condition: SQL,
  { groupBy, bucketStarts }: GroupQuery,
  keys: readonly KeyRow[],
): Promise<BucketRow[]> {
  const starts = sql.param(bucketStarts.map((ms) => new Date(ms).toISOString()));
  const bucket =
    bucketStarts.length === 0 ? sql`0` : sql`width_bucket(e.occurred_at, ${starts}::timestamptz[])`;
  const found = await tx.execute<BucketRow>(sql`
    select w.at, ${bucket} as bucket, count(*)::float8 as total
    from waf_events e join ${wanted(groupBy, keys)} on ${matches(groupBy)}
    where ${condition} group by 1, 2`);
  return found.rows;
}

function keyColumns(groupBy: readonly SearchDimension[]): SQL {
  return sql.raw(
    groupBy.map((name, index) => `coalesce(e.${SEARCH_COLUMNS[name]}, '') as k${index}`).join(", "),
  );
}

function names(groupBy: readonly SearchDimension[]): SQL {
  return sql.raw(groupBy.map((_, index) => `k${index}`).join(", "));
}

function ordinals(groupBy: readonly SearchDimension[]): SQL {
  return sql.raw(groupBy.map((_, index) => `${index + 1}`).join(", "));
}

/** The page's keys as a table `w`, numbered from 1. */
function wanted(groupBy: readonly SearchDimension[], keys: readonly KeyRow[]): SQL {
  const columns = groupBy.map(
    (_, index) => sql`${sql.param(keys.map(({ key }) => key[index] ?? ""))}::text[]`,
  );
  return sql`unnest(${sql.join(columns, sql`, `)}) with ordinality as w(${names(groupBy)}, at)`;
}

function matches(groupBy: readonly SearchDimension[]): SQL {
  return sql.raw(
    groupBy.map((name, index) => `coalesce(e.${SEARCH_COLUMNS[name]}, '') = w.k${index}`).join(" and "),
  );
}

/**
 * Orders texts as JavaScript does. Bytes of UTF-8 are in the same order but for characters beyond the first 65,536, which
 * UTF-16 writes with units below U+E000: so the lead bytes of U+E000 to U+FFFF are moved behind theirs.
 */
function inCodeUnits(text: SQL): SQL {
  return sql`case when octet_length(${text}) = char_length(${text}) then ${text} else
    translate(convert_from(convert_to(${text}, 'UTF8'), 'LATIN1'), ${"\u00EE\u00EF"}, ${"\u01F8\u01F9"}) end collate "C"`;
}

function assembleGroups(
  { groupBy, buckets }: GroupQuery,
  keys: readonly KeyRow[],
  tallies: readonly TallyRow[],
  bucketRows: readonly BucketRow[],
): FoundGroup[] {
  const counts = keys.map(() => new Map<string, Map<string, number>>());
  for (const { at, kind, text, total } of tallies) {
    const ofGroup = counts[at - 1];
    const ofKind = ofGroup?.get(kind) ?? new Map<string, number>();
    ofKind.set(text, total);
    ofGroup?.set(kind, ofKind);
  }
  const sparklines = keys.map(() => (buckets === 0 ? null : Array.from({ length: buckets }, () => 0)));
  for (const { at, bucket, total } of bucketRows) {
    const sparkline = sparklines[at - 1];
    if (sparkline) sparkline[bucket] = total;
  }
  return keys.map(({ key, total, first, last }, index) => ({
    key: Object.fromEntries(groupBy.map((name, position) => [name, key[position] ?? ""])),
    count: total,
    firstSeen: first,
    lastSeen: last,
    context: toContext(counts[index] ?? new Map()),
    sparkline: sparklines[index] ?? null,
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
