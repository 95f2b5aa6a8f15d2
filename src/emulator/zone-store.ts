/** The events of a zone, by column. */

import { MINUTE_MS } from "#lib/units.ts";
import { DIMENSIONS, type Dimension } from "#platform/contract/event-logs.ts";
import { compareDrafts, type Draft, type EventKey } from "./traffic/draft.ts";
import type { Traffic, ZonePlan } from "./traffic/traffic.ts";

/** The platform forgets an event this long after its timestamp. */
export const HORIZON_MS = 72 * 3_600_000;
/** Forgotten minutes are dropped together once there are this many, because dropping means drawing the rest again. */
const DROP_AFTER_MINUTES = 3 * 1_440;

export type ZoneStore = ReturnType<typeof createZoneStore>;

/**
 * Returns the events of one zone that are still served, in (time, logId) order, extended on demand over time. The
 * oracle can draw dropped events again.
 */
export function createZoneStore(plan: ZonePlan, traffic: Traffic) {
  let columns: Columns = createColumns();
  let firstMinute: number | undefined;
  let endMinute = 0;

  /** Returns where the zone's past begins: its history, or an earlier scripted attack. */
  const earliestMs = () =>
    Math.min(
      plan.firstEventMs,
      ...traffic.attacks().flatMap((attack) => (attack.zone === plan.id ? [attack.startMs] : [])),
    );

  return {
    plan,
    columns: () => columns,
    earliestMs,
    firstMinute: () => firstMinute ?? 0,

    /** Draws the events up to `nowMs`. A clock that was set back draws everything again. */
    extendTo(nowMs: number): void {
      const wanted = Math.floor(Math.max(earliestMs(), nowMs - HORIZON_MS) / MINUTE_MS);
      if (firstMinute === undefined || wanted < firstMinute || wanted > firstMinute + DROP_AFTER_MINUTES) {
        columns = createColumns();
        firstMinute = wanted;
        endMinute = wanted;
      }
      for (const lastMinute = Math.floor(nowMs / MINUTE_MS); endMinute <= lastMinute; endMinute++) {
        for (const draft of traffic.minute(plan, endMinute)) columns.push(draft);
      }
    },

    /** Marks the events from this time on as changed. The next extension draws them again. */
    redrawFrom(timeMs: number): void {
      const minute = Math.max(firstMinute ?? 0, Math.floor(timeMs / MINUTE_MS));
      if (minute >= endMinute) return;
      columns.truncate(columns.lowerBound(minute * MINUTE_MS));
      endMinute = minute;
    },

    draft: (row: number): Draft => traffic.redraw(plan.id, columns.at(row), columns.key(row)),
    redraw: (at: number, key: EventKey): Draft => traffic.redraw(plan.id, at, key),

    /** Returns the first row after a position, even if the store does not hold the position's own event. */
    rowAfter(position: Pick<Draft, "at" | "id">): number {
      let row = columns.lowerBound(position.at);
      while (row < columns.length() && columns.at(row) === position.at) {
        const draft = traffic.redraw(plan.id, columns.at(row), columns.key(row));
        if (compareDrafts(draft, position) > 0) return row;
        row++;
      }
      return row;
    },
  };
}

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

/** Maps texts to small numbers: one number per distinct text, in order of first use. */
interface Dictionary {
  codeOf(text: string): number;
  /** Returns the code of a text that is already known. */
  find(text: string): number | undefined;
  textOf(code: number): string;
  size(): number;
}

function createDictionary(): Dictionary {
  const codes = new Map<string, number>();
  const texts: string[] = [];
  return {
    codeOf(text) {
      const known = codes.get(text);
      if (known !== undefined) return known;
      codes.set(text, texts.length);
      return texts.push(text) - 1;
    },
    find: (text) => codes.get(text),
    textOf(code) {
      const text = texts[code];
      if (text === undefined) throw new RangeError(`no text with code ${code}`);
      return text;
    },
    size: () => texts.length,
  };
}
