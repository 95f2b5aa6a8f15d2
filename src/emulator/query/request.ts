import { isIP } from "node:net";
import { DIMENSIONS, type Dimension, OPERATORS } from "#platform/contract/event-logs.ts";

type Operator = (typeof OPERATORS)[number];

export interface Filter {
  readonly field: Dimension;
  readonly op: Operator;
  readonly value: readonly string[];
}

/** A search or export request with its defaults and clamps applied (platform API spec 2.3 and 2.6). */
export interface Search {
  readonly from: number;
  readonly to: number;
  readonly query: string;
  readonly filters: readonly Filter[];
  /** Empty for flat rows. */
  readonly groupBy: readonly Dimension[];
  readonly buckets: number;
  readonly page: number;
  readonly pageSize: number;
}

/** Each field that breaks a rule, with the rules that it breaks. */
export type Mistakes = Record<string, string[]>;

type Json = Readonly<Record<string, unknown>>;
type Refuse = (field: string, value: unknown, rule: string) => void;

const PROPERTIES = {
  search: ["from", "to", "query", "filters", "groupBy", "buckets", "page", "pageSize"],
  export: ["from", "to", "query", "filters"],
};
const FILTER_PROPERTIES = ["field", "op", "value"];
const MAX_INT32 = 2 ** 31 - 1;
/**
 * The spec names no size limits (section 8). These are the archive's, so that a client meets the same limits in both.
 */
const MAX_FILTERS = 50;
const MAX_VALUES = 1_000;
const MAX_TEXT_CHARS = 10_000;
const LONGEST_SHOWN_VALUE = 80;

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isUnset(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** Platform API spec 2.3 and 2.6: no properties other than the named ones. Names are case-sensitive (section 2). */
function checkProperties(object: Json, allowed: readonly string[], path: string, refuse: Refuse): void {
  const rule = `is not a property of this body; allowed are ${allowed.join(", ")}`;
  for (const name of Object.keys(object)) {
    if (!allowed.includes(name)) refuse(`${path}${name}`, object[name], rule);
  }
}

/** Platform API spec 2.3: `filters`, a filter's `value` and `groupBy` are arrays and nullable. */
function readList(given: unknown, path: string, refuse: Refuse): readonly unknown[] {
  if (isUnset(given)) return [];
  if (Array.isArray(given)) return given;
  refuse(path, given, "must be an array");
  return [];
}

/** Platform API spec 2.3: `from` and `to` are int64 and required. */
function readTime(body: Json, name: "from" | "to", refuse: Refuse): number {
  const value = body[name];
  if (typeof value === "number" && Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63)
    return value;
  refuse(name, value, "is required and must be Unix time in milliseconds");
  return Number.NaN;
}

/** Platform API spec 2.3: `query` is a string and nullable. */
function readQuery(body: Json, refuse: Refuse): string {
  const { query } = body;
  if (isUnset(query)) return "";
  if (typeof query !== "string") {
    refuse("query", query, "must be a string");
    return "";
  }
  if (query.length > MAX_TEXT_CHARS) refuse("query", query, `must be at most ${MAX_TEXT_CHARS} characters`);
  return query;
}

/**
 * Platform API spec 2.3: the operator `cidr` takes IPv4 or IPv6. The spec does not define how a network is written.
 * Accepted are an address, which is a network of one, and an address with a prefix length. The zone index of an IPv6
 * address (`fe80::1%eth0`) may be letters and digits and is ignored, because events have no such index.
 */
function isNetwork(text: string): boolean {
  const [address = "", prefix, ...more] = text.split("/");
  const version = isIP(address);
  if (version === 0 || more.length > 0 || /%.*[^0-9a-z]/i.test(address)) return false;
  if (prefix === undefined) return true;
  return /^\d+$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128);
}

/**
 * Platform API spec 2.3, filter clause. The schema calls all three members nullable, but the spec gives null no
 * meaning. A clause with a null member is refused, because ignoring it would show more than was requested.
 */
function readFilter(given: unknown, path: string, refuse: Refuse): Filter[] {
  if (!isObject(given)) {
    refuse(path, given, "must be an object with field, op and value");
    return [];
  }
  checkProperties(given, FILTER_PROPERTIES, `${path}.`, refuse);
  const field = DIMENSIONS.find((name) => name === given["field"]);
  if (field === undefined) refuse(`${path}.field`, given["field"], `must be one of ${DIMENSIONS.join(", ")}`);
  const op = OPERATORS.find((name) => name === given["op"]);
  if (op === undefined) refuse(`${path}.op`, given["op"], `must be one of ${OPERATORS.join(", ")}`);
  if (op === "cidr" && field !== "ip") refuse(`${path}.op`, op, "cidr applies to the field ip only");
  const value = readValues(given["value"], `${path}.value`, refuse);
  for (const text of value) {
    if (op === "cidr" && !isNetwork(text))
      refuse(`${path}.value`, text, "must be an IPv4 or IPv6 network such as 203.0.113.0/24");
  }
  return field === undefined || op === undefined ? [] : [{ field, op, value }];
}

/** Platform API spec 2.3: the `value` of a filter clause is one or more strings. */
function readValues(given: unknown, path: string, refuse: Refuse): string[] {
  const values = readList(given, path, refuse);
  const texts = values.filter((value) => typeof value === "string");
  if (texts.length === 0 || texts.length < values.length) refuse(path, given, "must be one or more strings");
  if (texts.length > MAX_VALUES) refuse(path, given, `must hold at most ${MAX_VALUES} values`);
  for (const text of texts) {
    if (text.length > MAX_TEXT_CHARS)
      refuse(path, text, `must hold strings of at most ${MAX_TEXT_CHARS} characters`);
  }
  return texts;
}

/** Platform API spec 2.3: `filters` is an array of filter clauses. */
function readFilters(body: Json, refuse: Refuse): Filter[] {
  const filters = readList(body["filters"], "filters", refuse);
  if (filters.length > MAX_FILTERS) refuse("filters", filters, `must hold at most ${MAX_FILTERS} filters`);
  return filters.flatMap((filter, index) => readFilter(filter, `filters[${index}]`, refuse));
}

/**
 * Platform API spec 2.3: `groupBy` is an array of dimensions, ordered and nullable. The spec does not say what a repeated
 * dimension means. A group's key is an object and can name a dimension only once, so the first mention counts.
 */
function readGroupBy(body: Json, refuse: Refuse): Dimension[] {
  const dimensions = readList(body["groupBy"], "groupBy", refuse).flatMap((given, index) => {
    const dimension = DIMENSIONS.find((name) => name === given);
    if (dimension !== undefined) return [dimension];
    refuse(`groupBy[${index}]`, given, `must be one of ${DIMENSIONS.join(", ")}`);
    return [];
  });
  return [...new Set(dimensions)];
}

/** Platform API spec 2.3: `buckets`, `page` and `pageSize` are int32, optional and not nullable. */
function readInt32(
  body: Json,
  name: "buckets" | "page" | "pageSize",
  fallback: number,
  refuse: Refuse,
): number {
  const value = body[name];
  if (value === undefined) return fallback;
  if (typeof value === "number" && Number.isInteger(value) && value >= -MAX_INT32 - 1 && value <= MAX_INT32)
    return value;
  refuse(name, value, "must be a 32-bit integer");
  return fallback;
}

function clamp(value: number, least: number, most: number): number {
  if (value < least) return least;
  if (value > most) return most;
  return value;
}

function quote(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > LONGEST_SHOWN_VALUE ? `${text.slice(0, LONGEST_SHOWN_VALUE).toWellFormed()}...` : text;
}

/**
 * Reads a search body by platform API spec 2.3, or an export body by 2.6. Returns the request, or every field that
 * breaks a rule. Written from the spec alone and in its order, so that the emulator shares no mistake with
 * Longwatch's archive. Only the sentences about mistakes are the archive's, because the spec has none (section 7 rule
 * 3) and tests compare whole answers.
 */
export function readSearch(
  body: unknown,
  kind: "search" | "export",
): { search: Search } | { mistakes: Mistakes } {
  if (!isObject(body))
    return { mistakes: { $: [`The body must be a JSON object, but it is ${quote(body)}.`] } };
  const mistakes = new Map<string, string[]>();
  const refuse: Refuse = (field, value, rule) => {
    const sentence = `The value ${quote(value)} is not valid: ${field} ${rule}.`;
    mistakes.set(field, [...(mistakes.get(field) ?? []), sentence]);
  };

  checkProperties(body, PROPERTIES[kind], "", refuse);
  const from = readTime(body, "from", refuse);
  const to = readTime(body, "to", refuse);
  // Spec 2.3: `to` must be after `from`. A comparison with a time that could not be read is false.
  if (to <= from) refuse("to", to, "must be after from");
  const query = readQuery(body, refuse);
  const filters = readFilters(body, refuse);
  // Spec 2.6: an export has no grouping and no paging. Such members are unknown properties, and are not read.
  const paged = kind === "search" ? body : {};
  const groupBy = readGroupBy(paged, refuse);
  // Spec 2.3 and 4.7 rule 4: above 500 is 500, unset is 0. The spec is silent about less than 0, which is read as 0.
  const buckets = clamp(readInt32(paged, "buckets", 0, refuse), 0, 500);
  // Spec 2.3: a zero-based index. The spec is silent about a negative one, which is read as the first page.
  const page = clamp(readInt32(paged, "page", 0, refuse), 0, MAX_INT32);
  // Spec 2.3 and 4.7 rule 3: clamped to 1 to 500, unset is 50.
  const pageSize = clamp(readInt32(paged, "pageSize", 50, refuse), 1, 500);

  if (mistakes.size > 0) return { mistakes: Object.fromEntries(mistakes) };
  return { search: { from, to, query, filters, groupBy, buckets, page, pageSize } };
}
