import { DAY_MS } from "../../src/lib/units.ts";
import { countBefore, type DayTimes } from "./day-times.ts";
import { HEAD_NUMBERS, isCounted, TALLIED_COLUMNS } from "./tally-day.ts";
import { readVarints, unpackVarints } from "./varints.ts";

/** A whole day as `pack` wrote it, of the one dimension that is grouped by. */
export interface TalliedDay {
  /** Days since 1970. */
  readonly day: number;
  readonly heads: Buffer;
  readonly tallies: Buffer;
  /** Of its events; null where nobody asks for sparklines. */
  readonly events: { readonly times: DayTimes; readonly codes: Buffer } | null;
}

/** A part of a day: its events in [from, to), epoch ms. */
export interface DayPart {
  readonly day: number;
  readonly from: number;
  readonly to: number;
  readonly times: DayTimes;
  /** Of every dimension, in the order of TALLIED_COLUMNS. */
  readonly codes: readonly Buffer[];
}

/** Events one by one: their texts column by column, by TALLIED_COLUMNS, and their times, epoch ms. */
export interface LooseEvents {
  readonly texts: readonly (readonly string[])[];
  readonly times: readonly number[];
}

/** Where one group is in the tallies of one day. */
interface Place {
  readonly tallies: Buffer;
  readonly from: number;
  readonly to: number;
}

interface MergedDay extends TalliedDay {
  readonly midnight: number;
  readonly headNumbers: Float64Array;
}

/** Events that were not tallied, one each, or what SQL made of them. A code below 0 is not said. */
interface Loose {
  readonly codes: readonly number[][];
  /** How many events of its group, and of each of its texts, a row stands for. */
  readonly totals: number[];
  readonly weights: number[];
  readonly firsts: number[];
  readonly lasts: number[];
}

export interface MergedGroup {
  readonly text: string;
  readonly total: number;
  /** Epoch ms. */
  readonly first: number;
  readonly last: number;
  readonly code: number;
}

/** How often one group has the texts of one dimension; `codes` in the order in which they were met. */
export interface MergedTally {
  readonly codes: readonly number[];
  readonly counts: Float64Array;
}

export type TallyMerge = ReturnType<typeof createTallyMerge>;

/**
 * Adds up the tallies of days and what is known of loose events, by one dimension. Only what a page shows is unpacked: the
 * rest of a day is its heads. `texts` are those that the days' codes stand for, by TALLIED_COLUMNS. Longer than other
 * files: its parts share the codes and are the hot loops of a search.
 */
export function createTallyMerge(column: number, texts: readonly (readonly string[])[]) {
  const dictionaries = TALLIED_COLUMNS.map((_, index) => createDictionary(texts[index] ?? []));
  const own = dictionaries[column] as Dictionary;
  const days: MergedDay[] = [];
  const loose: Loose = {
    codes: TALLIED_COLUMNS.map(() => []),
    totals: [],
    weights: [],
    firsts: [],
    lasts: [],
  };
  // Used again and again: a month of a busy zone would be hundreds of megabytes.
  let scratch = new Float64Array(1_024);

  return {
    addDay(day: TalliedDay): void {
      days.push({ ...day, midnight: day.day * DAY_MS, headNumbers: unpackVarints(day.heads) });
    },

    addPart({ day, from, to, times, codes }: DayPart): void {
      const midnight = day * DAY_MS;
      const [first, end] = [countBefore(times, from - midnight), countBefore(times, to - midnight)];
      codes.forEach((packed, index) => {
        const ofColumn = loose.codes[index] as number[];
        for (const code of unpackVarints(packed).subarray(first, end)) ofColumn.push(code);
      });
      for (const ms of times.subarray(first, end)) addMoment(midnight + ms);
    },

    addEvents({ texts, times }: LooseEvents): void {
      texts.forEach((ofColumn, index) => {
        const dictionary = dictionaries[index] as Dictionary;
        const codes = loose.codes[index] as number[];
        for (const text of ofColumn) codes.push(codeOf(dictionary, text));
      });
      for (const ms of times) addMoment(ms);
    },

    addGroup(text: string, { total, first, last }: { total: number; first: number; last: number }): void {
      loose.codes.forEach((codes, index) => codes.push(index === column ? codeOf(own, text) : -1));
      loose.totals.push(total);
      loose.weights.push(0);
      loose.firsts.push(first);
      loose.lasts.push(last);
    },

    /** How many of a group's events have a text in another column. */
    addTally(group: string, other: number, text: string, total: number): void {
      loose.codes.forEach((codes, index) => {
        const said = index === column ? group : index === other ? text : null;
        codes.push(said === null ? -1 : codeOf(dictionaries[index] as Dictionary, said));
      });
      loose.totals.push(0);
      loose.weights.push(total);
      loose.firsts.push(Number.POSITIVE_INFINITY);
      loose.lasts.push(Number.NEGATIVE_INFINITY);
    },

    texts: (index: number): readonly string[] => (dictionaries[index] as Dictionary).texts,

    /** Every group, in no order. */
    groups(): MergedGroup[] {
      const totals = new Float64Array(own.texts.length);
      const firsts = new Float64Array(own.texts.length).fill(Number.POSITIVE_INFINITY);
      const lasts = new Float64Array(own.texts.length).fill(Number.NEGATIVE_INFINITY);
      const meet = (code: number, total: number, first: number, last: number) => {
        totals[code] = (totals[code] as number) + total;
        if (first < (firsts[code] as number)) firsts[code] = first;
        if (last > (lasts[code] as number)) lasts[code] = last;
      };
      for (const { midnight, headNumbers: heads } of days) {
        for (let at = 0, code = 0; at < heads.length; at += HEAD_NUMBERS, code++) {
          code += heads[at] as number;
          const first = midnight + (heads[at + 2] as number);
          meet(code, heads[at + 1] as number, first, first + (heads[at + 3] as number));
        }
      }
      loose.codes[column]?.forEach((code, row) => {
        meet(code, loose.totals[row] as number, loose.firsts[row] as number, loose.lasts[row] as number);
      });
      return own.texts.flatMap((text, code) => {
        const total = totals[code] as number;
        return total === 0
          ? []
          : [{ text, total, first: firsts[code] as number, last: lasts[code] as number, code }];
      });
    },

    /** Tells of each of these groups, in their order, what it has of every other dimension, column by column. */
    tally(groups: readonly MergedGroup[], tell: (at: number, tallies: readonly MergedTally[]) => void): void {
      const places = locate(groups);
      const rows = looseRows(groups);
      const sums = dictionaries.map(({ texts }) => new Float64Array(texts.length));
      groups.forEach((_, at) => {
        const met = dictionaries.map((): number[] => []);
        for (const place of places[at] ?? []) addTallies(place, sums, met);
        for (const row of rows[at] ?? []) {
          for (let other = 0; other < loose.codes.length; other++) {
            const code = loose.codes[other]?.[row] ?? -1;
            const weight = loose.weights[row] as number;
            if (other === column || code < 0 || weight === 0) continue;
            const counts = sums[other] as Float64Array;
            if (counts[code] === 0) met[other]?.push(code);
            counts[code] = (counts[code] as number) + weight;
          }
        }
        tell(
          at,
          met.map((codes, other) => ({ codes, counts: sums[other] as Float64Array })),
        );
        met.forEach((codes, other) => {
          for (const code of codes) (sums[other] as Float64Array)[code] = 0;
        });
      });
    },

    /**
     * Counts the events of these groups by bucket: group after group, all buckets of each. `bucketStarts` are epoch ms and
     * ascending, without the first bucket's. Events of which only counts were added are left out.
     */
    buckets(groups: readonly MergedGroup[], bucketStarts: readonly number[]): Float64Array {
      const width = bucketStarts.length + 1;
      const wanted = placesOf(groups, own);
      const counts = new Float64Array(groups.length * width);
      for (const { midnight, events } of days) {
        if (events !== null) countEvents(events, midnight, { wanted, bucketStarts, counts });
      }
      loose.codes[column]?.forEach((code, row) => {
        const at = wanted[code] as number;
        if (at < 0 || loose.weights[row] === 0 || loose.totals[row] === 0) return;
        const place = at * width + bucketOfTime(loose.firsts[row] as number, bucketStarts);
        counts[place] = (counts[place] as number) + 1;
      });
      return counts;
    },
  };

  function addMoment(ms: number): void {
    loose.totals.push(1);
    loose.weights.push(1);
    loose.firsts.push(ms);
    loose.lasts.push(ms);
  }

  function addTallies(
    { tallies, from, to }: Place,
    sums: readonly Float64Array[],
    met: readonly number[][],
  ): void {
    if (to - from > scratch.length) scratch = new Float64Array(2 * (to - from));
    const numbers = scratch;
    readVarints(tallies, from, to, numbers);
    let at = 0;
    for (let other = 0; other < sums.length; other++) {
      if (other === column) continue;
      const counts = sums[other] as Float64Array;
      const ofColumn = met[other] as number[];
      const hasCounts = isCounted(other);
      const size = numbers[at++] as number;
      for (let index = 0, code = 0; index < size; index++, code++) {
        code += numbers[at++] as number;
        if (counts[code] === 0) ofColumn.push(code);
        counts[code] = (counts[code] as number) + (hasCounts ? (numbers[at++] as number) : 1);
      }
    }
  }

  function locate(groups: readonly MergedGroup[]): Place[][] {
    const wanted = placesOf(groups, own);
    const places = groups.map((): Place[] => []);
    for (const { headNumbers: heads, tallies } of days) {
      let from = 0;
      for (let head = 0, code = 0; head < heads.length; head += HEAD_NUMBERS, code++) {
        code += heads[head] as number;
        const to = from + (heads[head + 4] as number);
        const at = wanted[code] as number;
        if (at >= 0) places[at]?.push({ tallies, from, to });
        from = to;
      }
    }
    return places;
  }

  function looseRows(groups: readonly MergedGroup[]): number[][] {
    const wanted = placesOf(groups, own);
    const rows = groups.map((): number[] => []);
    loose.codes[column]?.forEach((code, row) => {
      const at = wanted[code] as number;
      if (at >= 0) rows[at]?.push(row);
    });
    return rows;
  }
}

interface Dictionary {
  readonly codes: Map<string, number>;
  readonly texts: string[];
}

function createDictionary(known: readonly string[]): Dictionary {
  return { codes: new Map(known.map((text, code) => [text, code])), texts: [...known] };
}

function codeOf({ codes, texts }: Dictionary, text: string): number {
  let code = codes.get(text);
  if (code === undefined) {
    code = texts.length;
    codes.set(text, code);
    texts.push(text);
  }
  return code;
}

/** The place of each code among the groups, -1 where it has none. */
function placesOf(groups: readonly MergedGroup[], { texts }: Dictionary): Int32Array {
  const places = new Int32Array(texts.length).fill(-1);
  groups.forEach(({ code }, at) => {
    places[code] = at;
  });
  return places;
}

interface BucketCounts {
  /** By code, the place of its group, below 0 for none. */
  readonly wanted: Int32Array;
  readonly bucketStarts: readonly number[];
  /** Group after group, all buckets of each. */
  readonly counts: Float64Array;
}

/** Within a day events come in the order of time: those of a bucket follow each other. */
function countEvents(
  { times, codes }: { readonly times: DayTimes; readonly codes: Buffer },
  midnight: number,
  { wanted, bucketStarts, counts }: BucketCounts,
): void {
  const width = bucketStarts.length + 1;
  let [event, at] = [0, 0];
  for (let bucket = bucketOfTime(midnight, bucketStarts); event < times.length; bucket++) {
    const next = bucketStarts[bucket];
    const end = next === undefined ? times.length : countBefore(times, next - midnight);
    for (; event < end; event++) {
      let byte = codes[at++] as number;
      let code = byte & 0x7f;
      for (let shift = 7; byte >= 0x80; shift += 7) {
        byte = codes[at++] as number;
        code += (byte & 0x7f) << shift;
      }
      const group = wanted[code] as number;
      if (group < 0) continue;
      const place = group * width + bucket;
      counts[place] = (counts[place] as number) + 1;
    }
  }
}

/** The bucket of a moment, epoch ms: how many of the starts are not after it. */
function bucketOfTime(ms: number, bucketStarts: readonly number[]): number {
  let [low, high] = [0, bucketStarts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((bucketStarts[middle] as number) <= ms) low = middle + 1;
    else high = middle;
  }
  return low;
}
