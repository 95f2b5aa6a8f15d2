import { navigate } from "wouter/use-browser-location";
import { DIMENSIONS, type Dimension } from "../look/words.ts";
import { toAddress, toPageLink, withParams } from "./url-state.ts";

/** The kinds of filter, each a parameter of the address: `is=country:DE&not=ruleId:942100&has=url:login`. */
const FILTER_KINDS = ["is", "not", "has", "like", "net"] as const;
export type FilterKind = (typeof FILTER_KINDS)[number];
export const KIND_WORDS: Readonly<Record<FilterKind, string>> = {
  is: "is",
  not: "is not",
  has: "contains",
  like: "matches",
  net: "is in",
};

export interface EventFilter {
  readonly kind: FilterKind;
  readonly field: Dimension;
  readonly value: string;
}

export interface Filters {
  readonly filters: readonly EventFilter[];
  readonly query: string;
  /** Parts of the address that are no filter. */
  readonly ignored: readonly string[];
}

export function readFilters(params: URLSearchParams): Filters {
  const filters: EventFilter[] = [];
  const ignored: string[] = [];
  for (const kind of FILTER_KINDS)
    for (const text of params.getAll(kind)) {
      const colon = text.indexOf(":");
      const field = text.slice(0, Math.max(colon, 0));
      if (colon < 0 || !Object.hasOwn(DIMENSIONS, field)) ignored.push(`the filter ${kind}=${text}`);
      else filters.push({ kind, field: field as Dimension, value: text.slice(colon + 1) });
    }
  return { filters, query: params.get("q") ?? "", ignored };
}

/** Returns the address's parameters for these filters. */
export function toFilterParams(filters: readonly EventFilter[]): Record<FilterKind, string[]> {
  const of = (kind: FilterKind) =>
    filters.filter((filter) => filter.kind === kind).map(({ field, value }) => `${field}:${value}`);
  return { is: of("is"), not: of("not"), has: of("has"), like: of("like"), net: of("net") };
}

export function isSameFilter(one: EventFilter, other: EventFilter): boolean {
  return one.kind === other.kind && one.field === other.field && one.value === other.value;
}

/** Adds a filter. One that says the opposite of it goes; one that is there already stays once. */
export function addFilter(filters: readonly EventFilter[], added: EventFilter): EventFilter[] {
  const isOpposite = ({ kind, field, value }: EventFilter) =>
    field === added.field && value === added.value && kind !== added.kind;
  return [...filters.filter((filter) => !isOpposite(filter) && !isSameFilter(filter, added)), added];
}

const EXPLORER = "/explorer";

/** The word of the platform's search for each action of a chart. */
const ACTION_VALUE = { blocked: "block", challenged: "challenge", logged: "log" } as const;

/** Filters for the action of a series of a chart, or filters it out. The series of all other actions has no value. */
export function filterAction(series: string, kind: FilterKind): void {
  const value = ACTION_VALUE[series as keyof typeof ACTION_VALUE];
  if (value !== undefined) filterEvents("action", value, kind);
}

/**
 * Filters for a value or filters it out: in place on the explorer, else by opening the explorer. It reads the address when
 * it is called, so that the hundreds of values of a table do not follow the address.
 */
export function filterEvents(field: Dimension, value: string, kind: FilterKind): void {
  const { pathname, search } = globalThis.location;
  const isHere = pathname === EXPLORER;
  const before = isHere ? readFilters(new URLSearchParams(search)).filters : [];
  const filters = toFilterParams(addFilter(before, { kind, field, value }));
  navigate(
    isHere
      ? toAddress(EXPLORER, withParams(search, { ...filters, event: null, zoneOf: null }))
      : toPageLink(search, EXPLORER, filters),
  );
}
