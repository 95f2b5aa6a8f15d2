import { isCounted, TALLIED_COLUMNS } from "./tally-day.ts";
import { readVarints } from "./varints.ts";

/** A day as `packDay` wrote it, of the one dimension that is grouped by. */
export interface TalliedDay {
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
  /** Of every dimension, in the order of TALLIED_COLUMNS. */
  readonly texts: readonly (readonly string[])[];
  readonly heads: Buffer;
  readonly tallies: Buffer;
  /** Empty where nobody asks for sparklines. */
  readonly minutes: Buffer;
}

/** Where one group is in one day. */
interface Place {
  readonly day: MergedDay;
  readonly talliesFrom: number;
  readonly talliesTo: number;
  readonly minutesFrom: number;
  readonly minutesTo: number;
}

interface MergedDay extends TalliedDay {
  /** Its codes to the common ones, of every dimension. */
  readonly codes: readonly Int32Array[];
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

const MIDNIGHT = "T00:00:00Z";
const HEAD_NUMBERS = 5;

export type TallyMerge = ReturnType<typeof createTallyMerge>;

/**
 * Adds up the tallies of days and what is known of loose events, by one dimension. Only what a page shows is unpacked: the
 * rest of a day is its heads.
 */
export function createTallyMerge(column: number) {
  const dictionaries = TALLIED_COLUMNS.map(createDictionary);
  const own = dictionaries[column] as Dictionary;
  const days: MergedDay[] = [];
  const loose: Loose = {
    codes: TALLIED_COLUMNS.map(() => []),
    totals: [],
    weights: [],
    firsts: [],
    lasts: [],
  };
  let scratch = new Float64Array(1_024);

  function unpack(bytes: Buffer, from: number, to: number): number {
    if (to - from > scratch.length) scratch = new Float64Array(2 * (to - from));
    return readVarints(bytes, from, to, scratch);
  }

  return {
    addDay(day: TalliedDay): void {
      const codes = day.texts.map((texts, index) => codesOf(dictionaries[index] as Dictionary, texts));
      const count = unpack(day.heads, 0, day.heads.length);
      days.push({ ...day, codes, headNumbers: scratch.slice(0, count) });
    },

    /** Flat: of each event its texts in the order of TALLIED_COLUMNS and its time, epoch ms. */
    addEvents(fields: readonly string[]): void {
      const width = TALLIED_COLUMNS.length + 1;
      for (let at = 0; at < fields.length; at += width) {
        for (let index = 0; index < dictionaries.length; index++) {
          loose.codes[index]?.push(codeOf(dictionaries[index] as Dictionary, fields[at + index] as string));
        }
        const ms = Number(fields[at + width - 1]);
        loose.totals.push(1);
        loose.weights.push(1);
        loose.firsts.push(ms);
        loose.lasts.push(ms);
      }
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
      for (const { day, codes, headNumbers: heads } of days) {
        const midnight = Date.parse(day + MIDNIGHT);
        codes[column]?.forEach((code, index) => {
          const at = index * HEAD_NUMBERS;
          const first = midnight + (heads[at + 1] as number);
          meet(code, heads[at] as number, first, first + (heads[at + 2] as number));
        });
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
        const add = (other: number, code: number, total: number) => {
          const counts = sums[other] as Float64Array;
          if (counts[code] === 0) met[other]?.push(code);
          counts[code] = (counts[code] as number) + total;
        };
        for (const place of places[at] ?? []) addTallies(place, add);
        for (const row of rows[at] ?? []) {
          for (let other = 0; other < loose.codes.length; other++) {
            const code = loose.codes[other]?.[row] ?? -1;
            const weight = loose.weights[row] as number;
            if (other !== column && code >= 0 && weight > 0) add(other, code, weight);
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

    /** Tells, group by group, what each minute of the tallied days has. */
    minutes(
      groups: readonly MergedGroup[],
      tell: (at: number, day: string, minute: number, total: number) => void,
    ): void {
      locate(groups).forEach((places, at) => {
        for (const { day, minutesFrom, minutesTo } of places) {
          const count = unpack(day.minutes, minutesFrom, minutesTo);
          for (let pair = 0, minute = 0; pair < count; pair += 2, minute++) {
            minute += scratch[pair] as number;
            tell(at, day.day, minute, scratch[pair + 1] as number);
          }
        }
      });
    },

    /** Tells the times of these groups' loose events; of no use where these were not added one by one. */
    times(groups: readonly MergedGroup[], tell: (at: number, ms: number) => void): void {
      looseRows(groups).forEach((rows, at) => {
        for (const row of rows) tell(at, loose.firsts[row] as number);
      });
    },
  };

  function addTallies(
    { day, talliesFrom, talliesTo }: Place,
    add: (other: number, code: number, total: number) => void,
  ): void {
    unpack(day.tallies, talliesFrom, talliesTo);
    let at = 0;
    for (let other = 0; other < day.codes.length; other++) {
      if (other === column) continue;
      const codes = day.codes[other] as Int32Array;
      const hasCounts = isCounted(other);
      const size = scratch[at++] as number;
      for (let index = 0, code = 0; index < size; index++, code++) {
        code += scratch[at++] as number;
        add(other, codes[code] as number, hasCounts ? (scratch[at++] as number) : 1);
      }
    }
  }

  function locate(groups: readonly MergedGroup[]): Place[][] {
    const wanted = placesOf(groups, own);
    const places = groups.map((): Place[] => []);
    for (const day of days) {
      let [tallies, minutes] = [0, 0];
      const codes = day.codes[column] as Int32Array;
      for (let index = 0; index < codes.length; index++) {
        const talliesFrom = tallies;
        const minutesFrom = minutes;
        tallies += day.headNumbers[index * HEAD_NUMBERS + 3] as number;
        minutes += day.headNumbers[index * HEAD_NUMBERS + 4] as number;
        const at = wanted[codes[index] as number] as number;
        if (at < 0) continue;
        places[at]?.push({ day, talliesFrom, talliesTo: tallies, minutesFrom, minutesTo: minutes });
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

function createDictionary(): Dictionary {
  return { codes: new Map(), texts: [] };
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

function codesOf(dictionary: Dictionary, texts: readonly string[]): Int32Array {
  return Int32Array.from(texts, (text) => codeOf(dictionary, text));
}

/** The place of each code among the groups, -1 where it has none. */
function placesOf(groups: readonly MergedGroup[], { texts }: Dictionary): Int32Array {
  const places = new Int32Array(texts.length).fill(-1);
  groups.forEach(({ code }, at) => {
    places[code] = at;
  });
  return places;
}
