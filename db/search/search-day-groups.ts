import { sql } from "drizzle-orm";
import type { Span } from "../../src/model/span.ts";
import type { Queryable } from "../client.ts";
import { createTallyMerge, type MergedGroup, type TallyMerge } from "./merge-tallies.ts";
import { type GroupPage, readCellGroups } from "./search-cells.ts";
import { and, toClause } from "./search-condition.ts";
import { mergeContexts } from "./search-contexts.ts";
import { type CountedDay, cutOut } from "./search-days.ts";
import { compareGroups } from "./search-group-parts.ts";
import { countStored, readLooseEvents } from "./search-loose-events.ts";
import type { OneByOne } from "./search-one-by-one.ts";
import { type DayReader, readDayTimes, readTallies, readTexts } from "./search-packed-days.ts";
import { type GroupQuery, SEARCH_COLUMNS } from "./search-query.ts";
import { readBuckets } from "./search-sparklines.ts";
import { TALLIED_COLUMNS } from "./tally-day.ts";

/**
 * A page of groups by one tallied dimension, about which alone is asked: closed days as they were counted in advance,
 * the rest from events.
 */
export async function readDayGroups(
  tx: Queryable,
  reader: DayReader,
  zoneId: number,
  query: GroupQuery,
  { days, most }: { days: readonly CountedDay[]; most: OneByOne },
): Promise<GroupPage> {
  const column = columnOf(query);
  const merge = createTallyMerge(column, await readTexts(tx, zoneId));
  await addDays(reader, query, { merge, column, days });
  const spans = cutOut(query, days);
  const areEvents = (await countStored(tx, zoneId, spans)) <= most.looseEvents;
  if (spans.length > 0) await addLoose(tx, zoneId, query, { merge, column, spans, areEvents });
  const groups = await keepAsked(tx, query, merge.groups());
  const keyed = groups.map((group) => ({ ...group, key: [group.text] })).sort(compareGroups);
  const page = keyed.slice(query.page * query.pageSize, (query.page + 1) * query.pageSize);
  const counted = areEvents ? [] : spans;
  return {
    total: groups.length,
    keys: page,
    contexts: mergeContexts(merge, column, page),
    sparklines:
      query.buckets === 0 ? null : await readSparklines(tx, zoneId, query, { merge, page, counted }),
  };
}

function columnOf({ groupBy: [dimension] }: GroupQuery): number {
  return TALLIED_COLUMNS.findIndex((name) => dimension !== undefined && name === SEARCH_COLUMNS[dimension]);
}

/** Of whole days the grouped dimension's counts, and its events where buckets are asked for; of others all events. */
async function addDays(
  reader: DayReader,
  query: GroupQuery,
  { merge, column, days }: { merge: TallyMerge; column: number; days: readonly CountedDay[] },
): Promise<void> {
  const times = await readDayTimes(
    reader,
    days.filter(({ isWhole }) => query.buckets > 0 || !isWhole),
  );
  const tallies = await readTallies(reader.client, days, { column, hasCodes: query.buckets > 0 });
  for (const day of days) {
    const ofDay = tallies.get(day.day) ?? [];
    const moments = times.get(day.day);
    const { heads = null, tallies: packed = null, codes = null } = ofDay[column] ?? {};
    if (heads !== null && packed !== null) {
      const events = codes === null || moments === undefined ? null : { codes, times: moments };
      merge.addDay({ day: day.day, heads, tallies: packed, events });
    } else if (moments !== undefined) {
      const columns = TALLIED_COLUMNS.map((_, index) => ofDay[index]?.codes ?? Buffer.alloc(0));
      merge.addPart({ ...day, times: moments, codes: columns });
    }
  }
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

interface Shown {
  readonly merge: TallyMerge;
  readonly page: readonly (MergedGroup & { readonly key: readonly string[] })[];
  /** Of which the merge knows counts, not events. */
  readonly counted: readonly Span[];
}

async function readSparklines(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  { merge, page, counted }: Shown,
): Promise<number[][]> {
  const counts = merge.buckets(page, query.bucketStarts);
  if (counted.length > 0 && page.length > 0) {
    for (const { at, bucket, total } of await readBuckets(tx, zoneId, query, page, counted)) {
      const place = (at - 1) * query.buckets + bucket;
      counts[place] = (counts[place] ?? 0) + total;
    }
  }
  return page.map((_, at) => Array.from(counts.subarray(at * query.buckets, (at + 1) * query.buckets)));
}
