/** Custom conditions: what people want to be alerted about, in the search language. `conditions` in the file and in commands. */
import { formatDuration, formatWhole, many } from "#lib/format.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { FIELDS, type FieldName } from "./fields.ts";
import type { SpikeSeverity } from "./kinds.ts";

/** A condition of a person. It is judged in each zone by itself, because an alert has one zone. */
export interface CustomCondition {
  readonly name: string;
  /** Filters as they were written, such as `path:wildcard:/admin*`. */
  readonly filters: readonly string[];
  /** Free text; may be empty. */
  readonly query: string;
  /** Null: every zone. */
  readonly zoneIds: readonly number[] | null;
  /** The condition holds while a window has more than this. Null: while a window has no event. */
  readonly moreThan: number | null;
  /** Different values of this field are counted. Null: events are. */
  readonly distinct: FieldName | null;
  readonly withinMinutes: number;
  readonly severity: SpikeSeverity;
}

export const CONDITION_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
export const CONDITION_NAME_RULE = "must be lower-case letters, digits, - and _, at most 63";
/** The most conditions, those of the file and those of commands together. */
export const MOST_CONDITIONS = 1_000;
export const LONGEST_WITHIN_MINUTES = 1_440;
/** The most different values that a condition can count: they are kept for each minute. */
export const MOST_DISTINCT = 1_000;

const RULE_PREFIX = "condition:";

/** Returns the rule id of the spikes of a condition, which no rule has and which is the alert's name for silences. */
export function conditionRule({ name }: Pick<CustomCondition, "name">): string {
  return `${RULE_PREFIX}${name}`;
}

/** Returns whether the condition is judged in this zone. */
export function isOfZone({ zoneIds }: CustomCondition, zoneId: number): boolean {
  return zoneIds === null || zoneIds.includes(zoneId);
}

/** Returns whether a count of a window lets the condition hold. */
export function holds({ moreThan }: Pick<CustomCondition, "moreThan">, count: number): boolean {
  return moreThan === null ? count === 0 : count > moreThan;
}

/** The events of a condition, in the words of the search: `path:wildcard:/admin*, country:not-eq:NL`. */
export function describeQuery({ filters, query }: Pick<CustomCondition, "filters" | "query">): string {
  const all = [...filters, ...(query === "" ? [] : [`text "${query}"`])];
  return all.length === 0 ? "every event" : all.join(", ");
}

/** `more than 50 events within 1 h`, `any event within 1 h`, `no event within 6 h`. */
export function describeLimit({ moreThan, distinct, withinMinutes }: Omit<CustomCondition, "name">): string {
  const within = `within ${formatDuration(withinMinutes * MINUTE_MS)}`;
  if (moreThan === null) return `no event ${within}`;
  if (distinct !== null)
    return `more than ${formatWhole(moreThan)} different values of ${distinct} ${within}`;
  return moreThan === 0 ? `any event ${within}` : `more than ${many(moreThan, "event")} ${within}`;
}

/** The parameters of the console's explorer for the operators of the search, and for their opposites. */
const PARAMETERS: Readonly<Record<string, readonly [string, string]>> = {
  eq: ["is", "not"],
  in: ["is", "not"],
  contains: ["has", "hasnot"],
  wildcard: ["like", "unlike"],
  cidr: ["net", "notnet"],
};

/** Returns the parameters with which the explorer finds the events of a condition; null for one of several values, which it cannot say. */
export function toExplorerParameters({
  filters,
  query,
}: Pick<CustomCondition, "filters" | "query">): [name: string, value: string][] | null {
  const found = filters.map((text): [string, string] | null => {
    const [, field, not, op = "", value = ""] = /^([^:]*):(not-)?([^:]*):(.*)$/s.exec(text) ?? [];
    const name = PARAMETERS[op]?.[not === undefined ? 0 : 1];
    if (name === undefined || /(?<!\\),/.test(value)) return null;
    return [name, `${field}:${value.replaceAll("\\,", ",")}`];
  });
  const known = found.filter((one) => one !== null);
  return known.length < found.length
    ? null
    : [...known, ...(query === "" ? [] : [["q", query] as [string, string]])];
}

/** The column of a field whose different values are counted. */
export function distinctColumn(field: FieldName): Exclude<(typeof FIELDS)[FieldName], "method"> {
  const column = FIELDS[field];
  if (column === "method") throw new Error("the method is in records only");
  return column;
}
