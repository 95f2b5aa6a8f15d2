/** Filters of events: in the address, and those of an alert. */

import { navigate } from "wouter/use-browser-location";
import { showIso } from "#lib/format.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { toExplorerParameters } from "#model/custom-condition.ts";
import { type FieldName, refuseValue, toFieldName } from "#model/fields.ts";
import { isChangeKind } from "#model/rules.ts";
import type { AlertDetail } from "../api/queries.ts";
import { NO_VALUE, wordField } from "../style/words.ts";
import { type Params, toAddress, toPageLink, withParams } from "./url-state.ts";

/**
 * The kinds of filter, each a parameter of the address: `is=country:DE&not=rule:942100&has=path:login`, with their words,
 * their operators in the search, and their opposites.
 */
export const FILTER_KINDS = {
  is: { word: "is", op: "eq", isNot: false, opposite: "not" },
  not: { word: "is not", op: "eq", isNot: true, opposite: "is" },
  has: { word: "contains", op: "contains", isNot: false, opposite: "hasnot" },
  hasnot: { word: "does not contain", op: "contains", isNot: true, opposite: "has" },
  like: { word: "matches", op: "wildcard", isNot: false, opposite: "unlike" },
  unlike: { word: "does not match", op: "wildcard", isNot: true, opposite: "like" },
  net: { word: "is in", op: "cidr", isNot: false, opposite: "notnet" },
  notnet: { word: "is not in", op: "cidr", isNot: true, opposite: "net" },
} as const;
export type FilterKind = keyof typeof FILTER_KINDS;
export const KIND_NAMES = Object.keys(FILTER_KINDS) as FilterKind[];

export interface EventFilter {
  readonly kind: FilterKind;
  readonly field: FieldName;
  readonly value: string;
}

/** Reads the filters and the text of the address. Its parts that are no filter are ignored. */
export function readFilters(params: URLSearchParams) {
  const filters: EventFilter[] = [];
  const ignored: string[] = [];
  for (const kind of KIND_NAMES)
    for (const text of params.getAll(kind)) {
      const colon = text.indexOf(":");
      const field = toFieldName(text.slice(0, Math.max(colon, 0)));
      if (field === null) ignored.push(`the filter ${kind}=${text}`);
      else filters.push({ kind, field, value: text.slice(colon + 1) });
    }
  return { filters, query: params.get("q") ?? "", ignored };
}

/** Returns the address's parameters for these filters. */
export function toFilterParams(filters: readonly EventFilter[]): Record<FilterKind, string[]> {
  const of = (kind: FilterKind) =>
    filters.filter((filter) => filter.kind === kind).map(({ field, value }) => `${field}:${value}`);
  return Object.fromEntries(KIND_NAMES.map((kind) => [kind, of(kind)])) as Record<FilterKind, string[]>;
}

/** `path does not contain /admin` */
export function wordFilter({ kind, field, value }: EventFilter): string {
  return `${wordField(field)} ${FILTER_KINDS[kind].word} ${value === "" ? NO_VALUE : value}`;
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

/** Filters for the action of a series of a chart, or filters it out. The series of all other actions has no value. */
export function filterAction(series: string, kind: "is" | "not"): void {
  if (series !== "other") filterEvents({ kind, field: "action", value: series });
}

/** The events that a page is about: what a value's filter is added to on the explorer. */
export interface PageEvents {
  readonly filters: readonly EventFilter[];
  /** Zone and span. */
  readonly params: Params;
}

/** Returns the parameters of an explorer that shows these events. */
export function toExplorerParams({ filters, params }: PageEvents): Params {
  return { ...params, ...toFilterParams(filters) };
}

/** The kind of filter that finds a value. What the platform may have sent and no rule allows is matched, not compared. */
export function kindFor(field: FieldName, value: string): FilterKind {
  return refuseValue(field, "eq", value) === null ? "is" : "like";
}

/**
 * Adds a filter: in place on the explorer, else to the events that the page is about, on the explorer. It reads the address when
 * it is called, so that the hundreds of values of a table do not follow the address.
 */
export function filterEvents(added: EventFilter, about: PageEvents = { filters: [], params: {} }): void {
  const { pathname, search } = globalThis.location;
  const isHere = pathname === EXPLORER;
  const before = isHere ? readFilters(new URLSearchParams(search)).filters : about.filters;
  const filters = addFilter(before, added);
  navigate(
    isHere
      ? toAddress(EXPLORER, withParams(search, toFilterParams(filters)))
      : toPageLink(search, EXPLORER, toExplorerParams({ ...about, filters })),
  );
}

/** The value that nearly every event of a sources alert shares, the narrowest field first. */
const SHARED = [
  ["ips", "address"],
  ["ja4s", "ja4"],
  ["userAgents", "agent"],
  ["asns", "network"],
] as const;
const NEARLY_ALL = 0.95;
const BEFORE_MS = 15 * MINUTE_MS;
const AFTER_MS = 5 * MINUTE_MS;

/** Returns whether an alert is about the rule that it names. Groups and alerts about Longwatch itself name none. */
export function hasRule({ kind }: Pick<AlertDetail, "kind">): boolean {
  return kind !== "sources" && kind !== "custom-condition" && !isChangeKind(kind);
}

/** Returns the filter that finds the events of an alert: its rule, or the source that it names. Null if there is none. */
export function toEventFilter({ kind, ruleId, rules, evidence }: AlertDetail): EventFilter | null {
  const [only, ...others] = rules;
  if (only !== undefined) return others.length === 0 ? { kind: "is", field: "rule", value: only } : null;
  if (hasRule({ kind })) return ruleId === null ? null : { kind: "is", field: "rule", value: ruleId };
  for (const [name, field] of SHARED) {
    const top = evidence?.[name]?.[0];
    if (top !== undefined && top.share >= NEARLY_ALL) return { kind: "is", field, value: top.value };
  }
  return null;
}

/** Returns the events of an alert: of its zone and its rule or source, from a little before to a little after it. */
export function toAlertEvents(alert: AlertDetail): PageEvents {
  const { condition, zoneId, firedAt, resolvedAt } = alert;
  const filter = condition === null ? toEventFilter(alert) : null;
  const asked = condition === null ? [] : (toExplorerParameters(condition) ?? []);
  const own = readFilters(new URLSearchParams(asked));
  return {
    filters: filter === null ? own.filters : [filter],
    params: {
      ...toSpanParams(Date.parse(firedAt), resolvedAt === null ? Date.now() : Date.parse(resolvedAt)),
      ...(own.query === "" ? {} : { q: own.query }),
      ...(zoneId === null ? {} : { zone: String(zoneId) }),
    },
  };
}

/** Returns the parameters of a span with some minutes before and after it. */
export function toSpanParams(fromMs: number, toMs: number) {
  return { span: null, from: showIso(fromMs - BEFORE_MS), to: showIso(toMs + AFTER_MS) };
}
