import { setImmediate as breathe } from "node:timers/promises";
import { TALLIED_COLUMNS } from "./tally-day.ts";
import { readVarints } from "./varints.ts";

/** Some events: of each its time from `base`, epoch ms, and its texts' codes by TALLIED_COLUMNS. */
export interface CodedEvents {
  readonly base: number;
  readonly times: Int32Array | Float64Array;
  /** Packed as `db/search/tally-day.ts` says, or as they are. */
  readonly codes: readonly (Buffer | Float64Array)[];
  /** Which of them: [first, end). */
  readonly first: number;
  readonly end: number;
}

/** How many events of each group of a page have each text, by TALLIED_COLUMNS: of all groups one after the other. */
export interface CodedCounts {
  readonly texts: readonly Int32Array[];
  /** Group after group, all buckets of each. */
  readonly buckets: Float64Array;
}

/** Up to so many possible groups are found by place, more by looking them up. */
const MOST_PLACES = 4_000_000;
/** Counts of a page's groups, each of four bytes. */
const MOST_COUNTS = 8_000_000;

/**
 * Groups events by any of the tallied columns. `texts` are those that codes stand for; `asked` says of each column which
 * codes are, null for all. Events are read twice, so that only the page's groups are counted text by text. Null where
 * that would take too much memory.
 */
export async function groupCodes(
  { texts, grouped, asked }: Question,
  parts: readonly CodedEvents[],
): Promise<{ groups: CodedGroups; countPage: CountPage } | null> {
  const sizes = grouped.map((column) => texts[column]?.length ?? 0);
  const possible = sizes.reduce((product, size) => product * Math.max(size, 1), 1);
  if (possible > Number.MAX_SAFE_INTEGER) return null;
  const needed = TALLIED_COLUMNS.map((_, column) => grouped.includes(column) || asked[column] !== null);
  const groups = createGroups(possible);
  const places: Int32Array[] = [];
  for (const part of parts) {
    places.push(placeEvents(part, unpack(part, needed), { grouped, sizes, asked, groups }));
    // A month of a busy zone takes a while: others have their turn after each day.
    await breathe();
  }
  const toKey = (composite: number): string[] => {
    let rest = composite;
    return grouped
      .map((column, index) => ({ column, size: sizes[index] as number }))
      .reverse()
      .map(({ column, size }) => {
        const code = rest % size;
        rest = Math.floor(rest / size);
        return texts[column]?.[code] ?? "";
      })
      .reverse();
  };
  return {
    groups: { ...groups.counted(), toKey },
    countPage: (page, bucketStarts) =>
      countPage(texts, { parts, places, groups: groups.counted().composites.length }, page, bucketStarts),
  };
}

interface Question {
  readonly texts: readonly (readonly string[])[];
  /** Places in TALLIED_COLUMNS. */
  readonly grouped: readonly number[];
  readonly asked: readonly (Uint8Array | null)[];
}

export interface CodedGroups {
  /** By place, as the other two. */
  readonly totals: Float64Array;
  readonly firsts: Float64Array;
  readonly lasts: Float64Array;
  readonly composites: readonly number[];
  readonly toKey: (composite: number) => string[];
}

/** The page's groups by their places; null where they would take too much memory. */
type CountPage = (
  page: readonly number[],
  bucketStarts: readonly number[] | null,
) => Promise<CodedCounts | null>;

function createGroups(possible: number) {
  const direct = possible <= MOST_PLACES ? new Int32Array(possible).fill(-1) : null;
  const looked = new Map<number, number>();
  const composites: number[] = [];
  let [totals, firsts, lasts] = [new Float64Array(1_024), new Float64Array(1_024), new Float64Array(1_024)];
  return {
    /** The place of the group, which has one event more. */
    meet(composite: number, ms: number): number {
      let place = direct === null ? (looked.get(composite) ?? -1) : (direct[composite] as number);
      if (place < 0) {
        place = composites.length;
        composites.push(composite);
        if (direct === null) looked.set(composite, place);
        else direct[composite] = place;
        if (place === totals.length) [totals, firsts, lasts] = [grow(totals), grow(firsts), grow(lasts)];
        firsts[place] = ms;
        lasts[place] = ms;
      }
      totals[place] = (totals[place] as number) + 1;
      if (ms < (firsts[place] as number)) firsts[place] = ms;
      if (ms > (lasts[place] as number)) lasts[place] = ms;
      return place;
    },
    counted: () => ({ totals: totals.subarray(0, composites.length), firsts, lasts, composites }),
  };
}

function grow(numbers: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(2 * numbers.length);
  larger.set(numbers);
  return larger;
}

/** The codes of the needed columns, event by event. */
function unpack({ codes }: CodedEvents, needed: readonly boolean[]): Float64Array[] {
  return codes.map((packed, column) => {
    if (!needed[column]) return new Float64Array();
    if (packed instanceof Float64Array) return packed;
    const numbers = new Float64Array(packed.length);
    return numbers.subarray(0, readVarints(packed, 0, packed.length, numbers));
  });
}

/** The place of each event's group, -1 for an event that is not asked for. */
function placeEvents(
  { base, times, first, end }: CodedEvents,
  codes: readonly Float64Array[],
  { grouped, sizes, asked, groups }: Omit<Question, "texts"> & Grouping,
): Int32Array {
  const places = new Int32Array(end - first).fill(-1);
  const tests = asked.flatMap((isAsked, column) =>
    isAsked === null ? [] : [{ isAsked, codes: codes[column] as Float64Array }],
  );
  const keys = grouped.map((column, index) => ({
    codes: codes[column] as Float64Array,
    size: sizes[index] as number,
  }));
  for (let event = first; event < end; event++) {
    let passes = true;
    for (const test of tests) passes &&= test.isAsked[test.codes[event] as number] === 1;
    if (!passes) continue;
    let composite = 0;
    for (const key of keys) composite = composite * key.size + (key.codes[event] as number);
    places[event - first] = groups.meet(composite, base + (times[event] as number));
  }
  return places;
}

interface Grouping {
  readonly sizes: readonly number[];
  readonly groups: ReturnType<typeof createGroups>;
}

interface Placed {
  readonly parts: readonly CodedEvents[];
  readonly places: readonly Int32Array[];
  /** How many there are. */
  readonly groups: number;
}

async function countPage(
  texts: readonly (readonly string[])[],
  { parts, places, groups }: Placed,
  page: readonly number[],
  bucketStarts: readonly number[] | null,
): Promise<CodedCounts | null> {
  const sizes = texts.map(({ length }) => length);
  if (page.length * Math.max(...sizes) > MOST_COUNTS) return null;
  const counts = sizes.map((size) => new Int32Array(page.length * size));
  const width = bucketStarts === null ? 0 : bucketStarts.length + 1;
  const buckets = new Float64Array(page.length * width);
  const shown = new Int32Array(groups).fill(-1);
  for (const [at, place] of page.entries()) shown[place] = at;
  for (const [index, part] of parts.entries()) {
    const at = Int32Array.from(places[index] as Int32Array, (place) =>
      place < 0 ? -1 : (shown[place] as number),
    );
    for (const [column, codes] of unpack(
      part,
      sizes.map(() => true),
    ).entries()) {
      addTexts(counts[column] as Int32Array, sizes[column] as number, { at, codes, first: part.first });
    }
    if (bucketStarts !== null) addBuckets(buckets, bucketStarts, at, part);
    await breathe();
  }
  return { texts: counts, buckets };
}

function addTexts(
  counts: Int32Array,
  size: number,
  { at, codes, first }: { at: Int32Array; codes: Float64Array; first: number },
): void {
  for (let event = 0; event < at.length; event++) {
    const group = at[event] as number;
    if (group < 0) continue;
    const place = group * size + (codes[first + event] as number);
    counts[place] = (counts[place] as number) + 1;
  }
}

function addBuckets(
  counts: Float64Array,
  bucketStarts: readonly number[],
  at: Int32Array,
  { base, times, first }: CodedEvents,
): void {
  const width = bucketStarts.length + 1;
  let [bucket, before] = [0, Number.NEGATIVE_INFINITY];
  for (let event = 0; event < at.length; event++) {
    const group = at[event] as number;
    if (group < 0) continue;
    const ms = base + (times[first + event] as number);
    // Events of a day come in the order of time; others in any.
    if (ms < before) bucket = 0;
    while ((bucketStarts[bucket] as number) <= ms) bucket++;
    before = ms;
    const place = group * width + bucket;
    counts[place] = (counts[place] as number) + 1;
  }
}
