import { sql } from "drizzle-orm";
import { DAY_MS } from "../../src/lib/units.ts";
import type { Queryable } from "../client.ts";
import { countBefore } from "./day-times.ts";
import { type CodedCounts, type CodedEvents, type CodedGroups, groupCodes } from "./group-codes.ts";
import type { GroupPage } from "./search-cells.ts";
import { and, toClause } from "./search-condition.ts";
import type { GroupContext } from "./search-contexts.ts";
import { type CountedDay, cutOut } from "./search-days.ts";
import { compareGroups, type GroupKey } from "./search-group-parts.ts";
import { countStored, readLooseEvents } from "./search-loose-events.ts";
import type { OneByOne } from "./search-one-by-one.ts";
import { type DayReader, readCodes, readDayTimes, readTexts } from "./search-packed-days.ts";
import { type GroupQuery, SEARCH_COLUMNS, type SearchClause } from "./search-query.ts";
import { TALLIED_COLUMNS } from "./tally-day.ts";

/**
 * A page of groups by tallied dimensions, about which alone is asked, each by itself: closed days from what is noted of
 * each of their events, the rest from events. Null where that is more than is worth reading one by one.
 */
export async function readCodedGroups(
  tx: Queryable,
  reader: DayReader,
  zoneId: number,
  query: GroupQuery,
  { days, most }: { days: readonly CountedDay[]; most: OneByOne },
): Promise<GroupPage | null> {
  const spans = cutOut(query, days);
  if ((await countStored(tx, zoneId, spans)) > most.looseEvents) return null;
  if ((await countStored(tx, zoneId, days)) > most.codedEvents) return null;
  const books = (await readTexts(tx, zoneId)).map(createBook);
  const loose = spans.length === 0 ? [] : [await readLoose(tx, zoneId, query, { books, spans })];
  const texts = books.map((book) => [...book.keys()]);
  const asked: (Uint8Array | null)[] = [];
  for (const [column, ofColumn] of texts.entries()) asked.push(await readAsked(tx, query, column, ofColumn));
  const grouped = query.groupBy.map((name) => columnOf(SEARCH_COLUMNS[name]));
  const parts = [...(await readDays(reader, days)), ...loose];
  const found = await groupCodes({ texts, grouped, asked }, parts);
  if (found === null) return null;
  const page = pickPage(found.groups, query);
  const places = page.map(({ place }) => place);
  const counts = await found.countPage(places, query.buckets === 0 ? null : query.bucketStarts);
  if (counts === null) return null;
  return {
    total: found.groups.composites.length,
    keys: page,
    contexts: page.map((_, at) => toContext(texts, counts, at)),
    sparklines:
      query.buckets === 0
        ? null
        : page.map((_, at) => [...counts.buckets.subarray(at * query.buckets, (at + 1) * query.buckets)]),
  };
}

function columnOf(column: string): number {
  return TALLIED_COLUMNS.findIndex((name) => name === column);
}

/** Text -> code. */
type Book = Map<string, number>;

function createBook(texts: readonly string[]): Book {
  return new Map(texts.map((text, code) => [text, code]));
}

/** Events one by one; texts that are new get the next codes. */
async function readLoose(
  tx: Queryable,
  zoneId: number,
  query: GroupQuery,
  { books, spans }: { books: readonly Book[]; spans: ReturnType<typeof cutOut> },
): Promise<CodedEvents> {
  const { texts, times } = await readLooseEvents(tx, zoneId, query, spans);
  const codes = texts.map((ofColumn, column) => {
    const book = books[column] as Book;
    return Float64Array.from(ofColumn, (text) => {
      const known = book.get(text);
      if (known !== undefined) return known;
      book.set(text, book.size);
      return book.size - 1;
    });
  });
  return { base: 0, times: Float64Array.from(times), codes, first: 0, end: times.length };
}

/** Which of a column's texts every clause about it lets pass; null for all. */
async function readAsked(
  tx: Queryable,
  { clauses }: GroupQuery,
  column: number,
  texts: readonly string[],
): Promise<Uint8Array | null> {
  const isAbout = ({ columns: [name] }: SearchClause) =>
    name !== undefined && SEARCH_COLUMNS[name] === TALLIED_COLUMNS[column];
  const own = clauses.filter(isAbout);
  if (own.length === 0) return null;
  const found = await tx.execute<{ code: number }>(sql`
    select (e.code - 1)::integer as code from (
      select code, text as ${sql.raw(TALLIED_COLUMNS[column] ?? "")}
      from unnest(${sql.param(texts)}::text[]) with ordinality as t(text, code)) e
    where ${and(own.map(toClause))}`);
  const asked = new Uint8Array(texts.length);
  for (const { code } of found.rows) asked[code] = 1;
  return asked;
}

async function readDays(reader: DayReader, days: readonly CountedDay[]): Promise<CodedEvents[]> {
  const times = await readDayTimes(reader, days);
  const codes = await readCodes(reader.client, days);
  return days.flatMap(({ day, from, to }) => {
    const moments = times.get(day);
    if (moments === undefined) return [];
    const base = day * DAY_MS;
    const [first, end] = [countBefore(moments, from - base), countBefore(moments, to - base)];
    return [{ base, times: moments, codes: codes.get(day) ?? [], first, end }];
  });
}

interface ShownGroup extends GroupKey {
  readonly place: number;
}

/** Only groups that are large enough for the page are given their keys and put in order. */
function pickPage(groups: CodedGroups, { page, pageSize }: GroupQuery): ShownGroup[] {
  const { totals, firsts, lasts, composites, toKey } = groups;
  const end = (page + 1) * pageSize;
  const least = totals.toSorted().at(-end) ?? 0;
  const large: ShownGroup[] = [];
  for (const [place, total] of totals.entries()) {
    if (total < least) continue;
    const key = toKey(composites[place] as number);
    large.push({ key, total, first: firsts[place] as number, last: lasts[place] as number, place });
  }
  return large.sort(compareGroups).slice(page * pageSize, end);
}

function toContext(
  texts: readonly (readonly string[])[],
  { texts: counts }: CodedCounts,
  at: number,
): GroupContext {
  const met = texts.map((ofColumn, column) => {
    const ofGroup = counts[column]?.subarray(at * ofColumn.length, (at + 1) * ofColumn.length);
    return ofColumn.flatMap((text, code) => {
      const count = ofGroup?.[code] ?? 0;
      return count === 0 ? [] : [{ text, count }];
    });
  });
  const [features = [], ruleIds = [], asns = [], countries = [], actions = []] = met;
  const acted = (name: string) => actions.find(({ text }) => text === name)?.count ?? 0;
  const all = (list: readonly Met[]) =>
    list
      .map(({ text }) => text)
      .sort()
      .join(",");
  return {
    country: mostMet(countries),
    asn: mostMet(asns),
    blocked: acted("block"),
    challenged: acted("challenge"),
    logged: acted("log"),
    features: all(features),
    ruleIds: all(ruleIds),
  };
}

interface Met {
  readonly text: string;
  readonly count: number;
}

function mostMet(list: readonly Met[]): string {
  let most: Met = { text: "", count: 0 };
  for (const met of list) {
    if (met.count > most.count || (met.count === most.count && met.text < most.text)) most = met;
  }
  return most.text;
}
