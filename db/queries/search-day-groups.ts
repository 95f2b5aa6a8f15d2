import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { createTallyMerge, type MergedGroup, type TalliedDay, type TallyMerge } from "../merge-tallies.ts";
import { TALLIED_COLUMNS } from "../tally-day.ts";
import { type GroupPage, readCellGroups } from "./search-cells.ts";
import { and, type Span, toClause } from "./search-condition.ts";
import { mergeContexts } from "./search-contexts.ts";
import { cutOut } from "./search-days.ts";
import { compareGroups } from "./search-group-parts.ts";
import { countStored, readLooseEvents } from "./search-loose-events.ts";
import { type GroupQuery, SEARCH_COLUMNS } from "./search-query.ts";
import {
  bucketOfTime,
  bucketsOfDay,
  readBuckets,
  readSplitMinutes,
  SPLIT,
  splitMinutes,
} from "./search-sparklines.ts";

/**
 * A page of groups by one tallied dimension, about which alone is asked: whole days as they were counted in advance, the
 * rest from events.
 */
export async function readDayGroups(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  days: readonly string[],
  mostLooseEvents: number,
): Promise<GroupPage> {
  const column = columnOf(query);
  const merge = createTallyMerge(column);
  for (const day of await readTalliedDays(tx, zoneId, query, days)) merge.addDay(day);
  const spans = cutOut(query, days);
  const areEvents = (await countStored(tx, zoneId, spans)) <= mostLooseEvents;
  if (spans.length > 0) await addLoose(tx, zoneId, query, { merge, column, spans, areEvents });
  const groups = await keepAsked(tx, query, merge.groups());
  const keyed = groups.map((group) => ({ ...group, key: [group.text] })).sort(compareGroups);
  const page = keyed.slice(query.page * query.pageSize, (query.page + 1) * query.pageSize);
  return {
    total: groups.length,
    keys: page,
    contexts: mergeContexts(merge, column, page),
    sparklines:
      query.buckets === 0
        ? null
        : await readSparklines(tx, zoneId, query, { merge, page, days, spans, areEvents }),
  };
}

function columnOf({ groupBy: [dimension] }: GroupQuery): number {
  return TALLIED_COLUMNS.findIndex((name) => dimension !== undefined && name === SEARCH_COLUMNS[dimension]);
}

async function readTalliedDays(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  days: readonly string[],
): Promise<TalliedDay[]> {
  const own = sql`dimension = ${TALLIED_COLUMNS[columnOf(query)]}`;
  const found = await tx.execute<{
    day: string;
    dimension: string;
    texts: string[];
    heads: Buffer | null;
    tallies: Buffer | null;
    minutes: Buffer | null;
  }>(sql`
    select to_char(day, 'YYYY-MM-DD') as day, dimension, texts, case when ${own} then heads end as heads,
      case when ${own} then tallies end as tallies, case when ${own} and ${query.buckets > 0} then minutes end as minutes
    from day_tallies where zone_id = ${zoneId} and day = any(${sql.param(days)}::date[])`);
  const byDay = Map.groupBy(found.rows, ({ day }) => day);
  return [...byDay].map(([day, rows]) => {
    const packed = rows.find(({ heads }) => heads !== null);
    return {
      day,
      texts: TALLIED_COLUMNS.map((name) => rows.find(({ dimension }) => dimension === name)?.texts ?? []),
      heads: packed?.heads ?? Buffer.alloc(0),
      tallies: packed?.tallies ?? Buffer.alloc(0),
      minutes: packed?.minutes ?? Buffer.alloc(0),
    };
  });
}

interface Rest {
  readonly merge: TallyMerge;
  readonly column: number;
  readonly spans: readonly Span[];
  readonly areEvents: boolean;
}

async function addLoose(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  { merge, column, spans, areEvents }: Rest,
): Promise<void> {
  if (areEvents) {
    merge.addEvents(await readLooseEvents(tx, zoneId, query, spans));
    return;
  }
  // Every group of the rest counts: which are on the page shows only when both are together.
  const every = { ...query, page: 0, pageSize: Number.MAX_SAFE_INTEGER };
  const { keys, tallies } = await readCellGroups(tx, zoneId, every, spans);
  for (const { key, ...counts } of keys) merge.addGroup(key[0] ?? "", counts);
  for (const { at, kind, text, total } of tallies) {
    const other = TALLIED_COLUMNS.findIndex((name) => name === kind);
    if (other !== column) merge.addTally(keys[at - 1]?.key[0] ?? "", other, text, total);
  }
}

/** Tallied days know of no clause: those of the grouped dimension are asked of its values. */
async function keepAsked(
  tx: Queryable,
  { groupBy: [dimension], clauses }: GroupQuery,
  groups: readonly MergedGroup[],
): Promise<readonly MergedGroup[]> {
  if (clauses.length === 0 || dimension === undefined) return groups;
  const found = await tx.execute<{ text: string }>(sql`
    select e.text from (
      select text, text as ${sql.raw(SEARCH_COLUMNS[dimension])}
      from unnest(${sql.param(groups.map(({ text }) => text))}::text[]) text) e
    where ${and(clauses.map(toClause))}`);
  const asked = new Set(found.rows.map(({ text }) => text));
  return groups.filter(({ text }) => asked.has(text));
}

interface Shown extends Omit<Rest, "column"> {
  readonly page: readonly (MergedGroup & { readonly key: readonly string[] })[];
  readonly days: readonly string[];
}

/** Minutes that two buckets share are read from events. */
async function readSparklines(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  { merge, page, days, spans, areEvents }: Shown,
): Promise<number[][]> {
  const lines = page.map(() => Array.from({ length: query.buckets }, () => 0));
  const add = (at: number, bucket: number, total: number) => {
    const line = lines[at];
    if (line !== undefined) line[bucket] = (line[bucket] ?? 0) + total;
  };
  const buckets = new Map(days.map((day) => [day, bucketsOfDay(day, query.bucketStarts)]));
  merge.minutes(page, (at, day, minute, total) => {
    const bucket = buckets.get(day)?.[minute] ?? SPLIT;
    if (bucket !== SPLIT) add(at, bucket, total);
  });
  const split = [...buckets].flatMap(([day, ofMinute]) => splitMinutes(day, ofMinute) ?? []);
  const counted = [
    ...(split.length > 0 ? await readSplitMinutes(tx, zoneId, query, page, split) : []),
    ...(spans.length > 0 && !areEvents ? await readBuckets(tx, zoneId, query, page, spans) : []),
  ];
  for (const { at, bucket, total } of counted) add(at - 1, bucket, total);
  if (areEvents) merge.times(page, (at, ms) => add(at, bucketOfTime(ms, query.bucketStarts), 1));
  return lines;
}
