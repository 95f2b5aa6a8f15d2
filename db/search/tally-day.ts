import { createVarintWriter, type VarintWriter } from "./varints.ts";

/** The columns of waf_events with few enough values to be counted in advance. */
export const TALLIED_COLUMNS = ["feature", "rule_id", "asn", "country", "action"] as const;
export type TalliedColumn = (typeof TALLIED_COLUMNS)[number];
/** Of these a group tells which there are, not how many events each has. */
const UNCOUNTED: ReadonlySet<TalliedColumn | undefined> = new Set(["feature", "rule_id"]);

/**
 * One dimension of a day, packed as varints. Values are codes, in ascending order written as the gap from the one before
 * (of adjacent ones 0). Of each value `heads` has HEAD_NUMBERS numbers: the gap, its events, the first and, from there, the
 * last (ms from midnight), and how many bytes are its in `tallies`. `tallies` has for each other dimension, in the order
 * of TALLIED_COLUMNS, how many texts are met, and of each of these the gap and, where `isCounted`, its events. `codes` has
 * the code of every event, in the order of the times.
 */
interface PackedDimension {
  readonly dimension: TalliedColumn;
  readonly heads: Buffer;
  readonly tallies: Buffer;
  readonly codes: Buffer;
}

export const HEAD_NUMBERS = 5;

interface PackedDay {
  readonly total: number;
  /** Of every event the ms since the one before, the first since midnight. */
  readonly times: Buffer;
  /** Packed one by one as they are asked for: each takes a while on a busy day. */
  readonly dimensions: Iterable<PackedDimension>;
}

export interface DayTally {
  /** An event's texts in the order of TALLIED_COLUMNS, and its ms from midnight, which is never before the last one's. */
  add(texts: readonly string[], ms: number): void;
  /** The texts of each column that were met. */
  texts(): readonly (readonly string[])[];
  /** With the code of each of these texts. */
  pack(codes: readonly (readonly number[])[]): PackedDay;
}

/** Counts a day event by event: about fifty bytes are kept of each until the day is packed. */
export function createDayTally(): DayTally {
  const books = TALLIED_COLUMNS.map(() => new Map<string, number>());
  const met = TALLIED_COLUMNS.map((): number[] => []);
  const times: number[] = [];
  return {
    add(texts, ms) {
      for (let column = 0; column < books.length; column++) {
        const text = texts[column] as string;
        const book = books[column] as Map<string, number>;
        let place = book.get(text);
        if (place === undefined) book.set(text, (place = book.size));
        met[column]?.push(place);
      }
      times.push(ms);
    },
    texts: () => books.map((book) => [...book.keys()]),
    pack(codes) {
      const columns = met.map((places, column) =>
        Int32Array.from(places, (place) => codes[column]?.[place] as number),
      );
      const gaps = createVarintWriter();
      times.forEach((ms, event) => gaps.write(ms - (times[event - 1] ?? 0)));
      return {
        total: times.length,
        times: gaps.finish(),
        dimensions: packDimensions(columns, times),
      };
    },
  };
}

export function isCounted(column: number): boolean {
  return !UNCOUNTED.has(TALLIED_COLUMNS[column]);
}

function* packDimensions(
  columns: readonly Int32Array[],
  times: readonly number[],
): Generator<PackedDimension, void, undefined> {
  for (const column of columns.keys()) yield packDimension(column, columns, times);
}

function packDimension(
  column: number,
  columns: readonly Int32Array[],
  times: readonly number[],
): PackedDimension {
  const [heads, tallies, codes] = [createVarintWriter(), createVarintWriter(), createVarintWriter()];
  let next = 0;
  for (const [code, events] of gather(columns[column] as Int32Array)) {
    const before = tallies.size();
    for (const [other, texts] of columns.entries()) {
      if (other !== column) writeTally(tallies, events, texts, isCounted(other));
    }
    const first = times[events[0] as number] as number;
    heads.write(code - next);
    heads.write(events.length);
    heads.write(first);
    heads.write((times[events.at(-1) as number] as number) - first);
    heads.write(tallies.size() - before);
    next = code + 1;
  }
  for (const code of columns[column] as Int32Array) codes.write(code);
  const dimension = TALLIED_COLUMNS[column] as TalliedColumn;
  return { dimension, heads: heads.finish(), tallies: tallies.finish(), codes: codes.finish() };
}

/** The events of each code, ascending. */
function gather(codes: Int32Array): [code: number, events: number[]][] {
  const found = new Map<number, number[]>();
  codes.forEach((code, event) => {
    const events = found.get(code);
    if (events === undefined) found.set(code, [event]);
    else events.push(event);
  });
  return [...found].sort(([one], [other]) => one - other);
}

function writeTally(
  writer: VarintWriter,
  events: readonly number[],
  codes: Int32Array,
  hasCounts: boolean,
): void {
  const counts = new Map<number, number>();
  for (const event of events) {
    const code = codes[event] as number;
    counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  writer.write(counts.size);
  let next = 0;
  for (const [code, count] of [...counts].sort(([one], [other]) => one - other)) {
    writer.write(code - next);
    if (hasCounts) writer.write(count);
    next = code + 1;
  }
}
