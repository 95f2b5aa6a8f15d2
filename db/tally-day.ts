import { createVarintWriter, type VarintWriter } from "./varints.ts";

/** The columns of waf_events with few enough values to be counted in advance. */
export const TALLIED_COLUMNS = ["feature", "rule_id", "asn", "country", "action"] as const;
export type TalliedColumn = (typeof TALLIED_COLUMNS)[number];
/** Of these a group tells which there are, not how many events each has. */
export const UNCOUNTED: ReadonlySet<TalliedColumn> = new Set(["feature", "rule_id"]);

const MINUTE_MS = 60_000;

/**
 * One dimension of a day, packed as varints. Of each value, in the order of `texts`, `heads` has five numbers: its events,
 * the first and, from there, the last (ms from midnight), and how many bytes are its in `tallies` and in `minutes`.
 * `tallies` has for each other dimension, in the order of TALLIED_COLUMNS, how many texts are met, and of each of these
 * the gap from the one before and, unless UNCOUNTED, its events. `minutes` has pairs of gap and events.
 */
export interface PackedDimension {
  readonly dimension: TalliedColumn;
  readonly texts: readonly string[];
  readonly heads: Buffer;
  readonly tallies: Buffer;
  readonly minutes: Buffer;
}

export interface PackedDay {
  readonly total: number;
  /** Of all events: pairs of gap and events. */
  readonly minutes: Buffer;
  readonly dimensions: readonly PackedDimension[];
}

export interface DayTally {
  /** An event's texts in the order of TALLIED_COLUMNS, and its ms from midnight. */
  add(texts: readonly string[], ms: number): void;
  pack(): PackedDay;
}

/** Counts a day event by event: about fifty bytes are kept of each until the day is packed. */
export function createDayTally(): DayTally {
  const books = TALLIED_COLUMNS.map(() => new Map<string, number>());
  const codes = TALLIED_COLUMNS.map((): number[] => []);
  const times: number[] = [];
  return {
    add(texts, ms) {
      for (let column = 0; column < books.length; column++) {
        const text = texts[column] as string;
        const book = books[column] as Map<string, number>;
        let code = book.get(text);
        if (code === undefined) book.set(text, (code = book.size));
        codes[column]?.push(code);
      }
      times.push(ms);
    },
    pack() {
      const sorted = books.map((book) => [...book.keys()].sort());
      const columns = books.map((book, column) => {
        const places = new Int32Array(book.size);
        sorted[column]?.forEach((text, place) => {
          places[book.get(text) as number] = place;
        });
        return Int32Array.from(codes[column] as number[], (code) => places[code] as number);
      });
      const writer = createVarintWriter();
      writeMinutes(writer, countMinutes(times));
      return {
        total: times.length,
        minutes: writer.finish(),
        dimensions: TALLIED_COLUMNS.map((_, column) => packDimension(column, sorted, columns, times)),
      };
    },
  };
}

function packDimension(
  column: number,
  texts: readonly (readonly string[])[],
  columns: readonly Int32Array[],
  times: readonly number[],
): PackedDimension {
  const [heads, tallies, minutes] = [createVarintWriter(), createVarintWriter(), createVarintWriter()];
  for (const events of gather(columns[column] as Int32Array, (texts[column] as readonly string[]).length)) {
    const ofValue = events.map((event) => times[event] as number);
    const [talliedBefore, minutesBefore] = [tallies.size(), minutes.size()];
    for (const [other, codes] of columns.entries()) {
      if (other !== column) writeTally(tallies, events, codes, isCounted(other));
    }
    writeMinutes(minutes, countMinutes(ofValue));
    const first = ofValue.reduce((least, ms) => Math.min(least, ms), Number.POSITIVE_INFINITY);
    const last = ofValue.reduce((most, ms) => Math.max(most, ms), 0);
    heads.write(events.length);
    heads.write(first);
    heads.write(last - first);
    heads.write(tallies.size() - talliedBefore);
    heads.write(minutes.size() - minutesBefore);
  }
  return {
    dimension: TALLIED_COLUMNS[column] as TalliedColumn,
    texts: texts[column] as readonly string[],
    heads: heads.finish(),
    tallies: tallies.finish(),
    minutes: minutes.finish(),
  };
}

export function isCounted(column: number): boolean {
  return !UNCOUNTED.has(TALLIED_COLUMNS[column] as TalliedColumn);
}

/** The events of each code. */
function gather(codes: Int32Array, count: number): number[][] {
  const events = Array.from({ length: count }, (): number[] => []);
  codes.forEach((code, event) => events[code]?.push(event));
  return events;
}

function writeTally(
  writer: VarintWriter,
  events: readonly number[],
  codes: Int32Array,
  isCounted: boolean,
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
    if (isCounted) writer.write(count);
    next = code + 1;
  }
}

function countMinutes(times: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const ms of times) {
    const minute = Math.floor(ms / MINUTE_MS);
    counts.set(minute, (counts.get(minute) ?? 0) + 1);
  }
  return counts;
}

function writeMinutes(writer: VarintWriter, counts: ReadonlyMap<number, number>): void {
  let next = 0;
  for (const [minute, count] of [...counts].sort(([one], [other]) => one - other)) {
    writer.write(minute - next);
    writer.write(count);
    next = minute + 1;
  }
}
