import { DIMENSIONS, type Dimension } from "#adapters/edge/contract/event-logs-search.ts";
import { createDictionary, type Dictionary } from "./dictionary.ts";
import type { Draft } from "./traffic/draft.ts";

type Numbers = Float64Array | Uint32Array | Uint16Array;

const FIRST_CAPACITY = 4_096;

function grown<T extends Numbers>(column: T, capacity: number, make: (capacity: number) => T): T {
  const larger = make(capacity);
  larger.set(column);
  return larger;
}

const float64 = (capacity: number) => new Float64Array(capacity);
const uint32 = (capacity: number) => new Uint32Array(capacity);
const uint16 = (capacity: number) => new Uint16Array(capacity);

function draftTexts(draft: Draft): Record<Dimension | "message", string> {
  const { rule, action, ip, asn, country, ja4, ua, url } = draft;
  return {
    feature: rule.feature,
    ruleId: rule.ruleId,
    ip,
    ja4,
    ua,
    url,
    asn,
    country,
    action,
    message: rule.message,
  };
}

export type ColumnName = Dimension | "message";
export type Columns = ReturnType<typeof createColumns>;

/**
 * Returns one zone's events as parallel arrays, about 54 bytes each: the values that a search needs to filter and
 * count. All other values are drawn again from the key.
 */
export function createColumns() {
  const names: readonly ColumnName[] = [...DIMENSIONS, "message"];
  const dictionaries = new Map<ColumnName, Dictionary>(names.map((name) => [name, createDictionary()]));
  const codes = new Map<ColumnName, Uint32Array>(names.map((name) => [name, uint32(FIRST_CAPACITY)]));
  let at = float64(FIRST_CAPACITY);
  let lateMs = uint32(FIRST_CAPACITY);
  let slot = uint32(FIRST_CAPACITY);
  let source = uint16(FIRST_CAPACITY);
  let length = 0;

  function grow(): void {
    const capacity = Math.ceil(at.length * 1.5);
    at = grown(at, capacity, float64);
    lateMs = grown(lateMs, capacity, uint32);
    slot = grown(slot, capacity, uint32);
    source = grown(source, capacity, uint16);
    for (const [name, column] of codes) codes.set(name, grown(column, capacity, uint32));
  }

  function dictionaryOf(name: ColumnName): Dictionary {
    const dictionary = dictionaries.get(name);
    if (dictionary === undefined) throw new RangeError(`no column ${name}`);
    return dictionary;
  }

  function codesOf(name: ColumnName): Uint32Array {
    const column = codes.get(name);
    if (column === undefined) throw new RangeError(`no column ${name}`);
    return column;
  }

  return {
    length: () => length,
    at: (row: number): number => at[row] ?? Number.NaN,
    visibleAt: (row: number): number => (at[row] ?? Number.NaN) + (lateMs[row] ?? 0),
    key: (row: number) => ({ source: source[row] ?? 0, slot: slot[row] ?? 0 }),
    /**
     * Returns the codes of one column, valid until the next push. Every text has one code, so equal codes are equal
     * texts.
     */
    codesOf,
    dictionaryOf,
    push(draft: Draft): void {
      if (length === at.length) grow();
      at[length] = draft.at;
      lateMs[length] = draft.visibleAt - draft.at;
      slot[length] = draft.slot;
      source[length] = draft.source;
      const texts = draftTexts(draft);
      for (const name of names) codesOf(name)[length] = dictionaryOf(name).codeOf(texts[name]);
      length++;
    },
    /** Removes every row from this position on. */
    truncate(newLength: number): void {
      length = Math.min(length, newLength);
    },
    /** Returns the first row at or after a time. */
    lowerBound(timeMs: number): number {
      let low = 0;
      let high = length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((at[middle] ?? 0) < timeMs) low = middle + 1;
        else high = middle;
      }
      return low;
    },
  };
}
