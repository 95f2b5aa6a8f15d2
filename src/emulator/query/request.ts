import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { DIMENSIONS, type Dimension } from "../traffic/render-event.ts";

const OPERATORS = ["eq", "in", "contains", "cidr", "wildcard"] as const;
type Operator = (typeof OPERATORS)[number];

export interface Filter {
  readonly field: Dimension;
  readonly op: Operator;
  readonly value: readonly string[];
}

/** A search or export body after the clamps of platform API spec 2.3. */
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

/** Field -> what is wrong with it, as the platform's validation answers word it. */
export type Mistakes = Record<string, string[]>;

const MAX_INT32 = 2_147_483_647;
const SEARCH_FIELDS = ["from", "to", "query", "filters", "groupBy", "buckets", "page", "pageSize"];
const EXPORT_FIELDS = ["from", "to", "query", "filters"];
const SHOWN_CHARS = 80;

function shown(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}...` : text;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isDimension(value: unknown): value is Dimension {
  return DIMENSIONS.some((dimension) => dimension === value);
}

/** Four decimal numbers or IPv6: what some read as octal or fill up in the middle is no network. */
function isCidr(text: string): boolean {
  const [address = ""] = text.split("/", 1);
  return isIP(address) !== 0 && (ipaddr.isValidCIDR(text) || ipaddr.isValid(text));
}

function isInt32(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= -MAX_INT32 - 1 && Number(value) <= MAX_INT32;
}

function createReader(mistakes: Mistakes) {
  const wrong = (field: string, value: unknown, rule: string) => {
    (mistakes[field] ??= []).push(`The value ${shown(value)} is not valid: ${field} ${rule}.`);
  };

  function refuseOthers(value: Record<string, unknown>, allowed: readonly string[], path: string): void {
    for (const key of Object.keys(value)) {
      if (!allowed.includes(key))
        wrong(
          `${path}${key}`,
          value[key],
          `is not a property of this body; allowed are ${allowed.join(", ")}`,
        );
    }
  }

  function integer(field: string, value: unknown, fallback: number): number {
    if (value === undefined) return fallback;
    if (isInt32(value)) return value;
    wrong(field, value, "must be a 32-bit integer");
    return fallback;
  }

  function time(field: string, value: unknown): number {
    if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value);
    wrong(field, value, "is required and must be Unix time in milliseconds");
    return Number.NaN;
  }

  function text(field: string, value: unknown): string {
    if (value === undefined || value === null) return "";
    if (typeof value === "string") return value;
    wrong(field, value, "must be a string");
    return "";
  }

  function list(field: string, value: unknown): readonly unknown[] {
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value;
    wrong(field, value, "must be an array");
    return [];
  }

  function filter(path: string, value: unknown): Filter[] {
    if (!isObject(value)) {
      wrong(path, value, "must be an object with field, op and value");
      return [];
    }
    refuseOthers(value, ["field", "op", "value"], `${path}.`);
    const { field } = value;
    const op = OPERATORS.find((known) => known === value["op"]);
    if (!isDimension(field)) wrong(`${path}.field`, field, `must be one of ${DIMENSIONS.join(", ")}`);
    if (op === undefined) wrong(`${path}.op`, value["op"], `must be one of ${OPERATORS.join(", ")}`);
    if (op === "cidr" && field !== "ip") wrong(`${path}.op`, op, "cidr applies to the field ip only");
    const values = list(`${path}.value`, value["value"]);
    const texts = values.filter((item) => typeof item === "string");
    if (texts.length === 0 || texts.length !== values.length)
      wrong(`${path}.value`, value["value"], "must be one or more strings");
    if (op === "cidr") {
      for (const item of texts)
        if (!isCidr(item))
          wrong(`${path}.value`, item, "must be an IPv4 or IPv6 network such as 203.0.113.0/24");
    }
    return isDimension(field) && op !== undefined ? [{ field, op, value: texts }] : [];
  }

  function groupBy(value: unknown): Dimension[] {
    const dimensions = list("groupBy", value);
    for (const [index, item] of dimensions.entries()) {
      if (!isDimension(item)) wrong(`groupBy[${index}]`, item, `must be one of ${DIMENSIONS.join(", ")}`);
    }
    return [...new Set(dimensions.filter(isDimension))];
  }

  return { wrong, refuseOthers, integer, time, text, list, filter, groupBy };
}

/**
 * Reads a search or export body by the rules of platform API spec 2.3 and 2.6: pageSize is clamped to 1..500 (50 when
 * unset), buckets to 0..500, page to 0 or more; an empty groupBy means flat rows. Everything else that breaks a rule
 * is reported, all of it at once.
 */
export function readSearch(
  body: unknown,
  kind: "search" | "export",
): { search: Search } | { mistakes: Mistakes } {
  // Fields are named as the caller named them, and one may be called __proto__.
  const mistakes = Object.create(null) as Mistakes;
  if (!isObject(body))
    return { mistakes: { $: [`The body must be a JSON object, but it is ${shown(body)}.`] } };
  const read = createReader(mistakes);
  read.refuseOthers(body, kind === "search" ? SEARCH_FIELDS : EXPORT_FIELDS, "");
  const from = read.time("from", body["from"]);
  const to = read.time("to", body["to"]);
  if (to <= from) read.wrong("to", to, "must be after from");
  const filters = read
    .list("filters", body["filters"])
    .flatMap((item, index) => read.filter(`filters[${index}]`, item));
  const forSearch = kind === "search" ? body : {};
  const search: Search = {
    from,
    to,
    query: read.text("query", body["query"]),
    filters,
    groupBy: read.groupBy(forSearch["groupBy"]),
    buckets: Math.min(Math.max(read.integer("buckets", forSearch["buckets"], 0), 0), 500),
    page: Math.max(read.integer("page", forSearch["page"], 0), 0),
    pageSize: Math.min(Math.max(read.integer("pageSize", forSearch["pageSize"], 50), 1), 500),
  };
  return Object.keys(mistakes).length > 0 ? { mistakes } : { search };
}
