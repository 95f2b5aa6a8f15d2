/** Reads a search as it was written, says what is wrong with it, and plans it. */
import { z } from "zod";
import { isObject } from "#lib/json.ts";
import { cleanText } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import {
  FIELD_NAMES,
  FIELDS,
  type FieldName,
  type Filter,
  refuseValue,
  toFieldName,
  toStoredValues,
} from "#model/fields.ts";
import { startOfDay } from "#model/horizon.ts";
import { DIMENSIONS, OPERATORS } from "#model/kinds.ts";
import { refuseHidden } from "../mask.ts";
import {
  countTests,
  EQUALS_PER_TEST,
  type Mistakes,
  planSearch,
  type Search,
  type SearchPlan,
  toNetwork,
} from "./plan-search.ts";
import { passesTest } from "./text-test.ts";

const MAX_INT32 = 2_147_483_647;
/** One more than the largest int64. */
const INT64_END = 2 ** 63;
const MAX_BUCKETS = 500;
const MAX_PAGE_SIZE = 500;
const DEFAULT_PAGE_SIZE = 50;
const SHOWN_CHARS = 80;
/** Maximum number of reported mistakes, so that the answer to a wrong body is not many times its size. */
const MAX_MISTAKES = 50;
/** More filters would make statements that take longer to plan than to run. */
const MAX_FILTERS = 50;
const MAX_VALUES = 1_000;
const MAX_VALUE_CHARS = 10_000;

/** The text and the filters of a search as people write them. `parseFilter` reads a filter. */
export const WrittenQuery = z.string().max(MAX_VALUE_CHARS);
export const WrittenFilters = z.array(z.string().max(MAX_VALUE_CHARS)).max(MAX_FILTERS);

/** Maximum number of tests per event in one request, for any time range. */
const MAX_TESTS = 5_000;
/** Maximum number of tests times days of the time range. */
const MAX_TEST_DAYS = 20_000;
/** This many tests are allowed for any time range, because the estimate by events limits their cost. */
const ALWAYS_ALLOWED = 200;

const MEMBERS = {
  search: ["from", "to", "query", "filters", "groupBy", "buckets", "page", "pageSize"],
  export: ["from", "to", "query", "filters"],
} as const;

export type SearchForm = "platform" | "native";

export interface SearchRequest {
  readonly zoneId: number;
  readonly plan: SearchPlan;
  readonly isMasked: boolean;
}

/** The same about several zones. */
export interface ZonesRequest extends Omit<SearchRequest, "zoneId"> {
  readonly zoneIds: readonly number[];
}

/**
 * Returns the request without its filters by zone, about the zones that pass them: the zones decide which partitions and files are
 * read.
 */
export function narrowZones({ zoneIds, plan, ...request }: ZonesRequest): ZonesRequest {
  const isOfZone = ({ columns }: SearchPlan["clauses"][number]) => columns[0] === "zone";
  const asked = plan.clauses.filter(isOfZone);
  if (asked.length === 0) return { zoneIds, plan, ...request };
  const passes = (zoneId: number) =>
    asked.every(
      ({ tests, isNegated = false }) => tests.some((test) => passesTest(test, String(zoneId))) !== isNegated,
    );
  const clauses = plan.clauses.filter((clause) => !isOfZone(clause));
  return { ...request, zoneIds: zoneIds.filter(passes), plan: { ...plan, clauses } };
}

/** Returns the plan of a body, or everything that is wrong with it. */
export function planBody(
  body: unknown,
  { nowMs, retentionDays, isMasked }: { nowMs: number; retentionDays: number; isMasked: boolean },
  { kind, form }: { readonly kind: "search" | "export"; readonly form: SearchForm },
): Omit<SearchRequest, "zoneId"> | { readonly mistakes: Mistakes } {
  const tooMany = refuseManyTests(body);
  if (tooMany !== null) return { mistakes: tooMany };
  const read = readSearch(body, kind, form);
  if ("mistakes" in read) return read;
  const { search } = read;
  const mistakes = checkWindow(search, { nowMs, retentionDays }) ?? (isMasked ? refuseHidden(search) : null);
  if (mistakes !== null) return { mistakes };
  return { plan: planSearch(search, { isMasked }), isMasked };
}

type Reader = ReturnType<typeof createReader>;

/**
 * Reads a search or export body (platform API spec 2.3 and 2.6). `pageSize` is clamped to 1..500 (50 when unset),
 * `buckets` to 0..500 and `page` to 0 or more. An empty `groupBy` means flat rows, and a repeated dimension counts
 * once. All mistakes are reported together. The caller checks how far back a window may reach. A body of the form `native`
 * names fields as every face of Longwatch does, a filter in it may have the member `not`, and a value that no event can have
 * is a mistake.
 */
export function readSearch(
  body: unknown,
  kind: "search" | "export",
  form: SearchForm = "platform",
): { readonly search: Search } | { readonly mistakes: Mistakes } {
  // Fields have the caller's names, and one may be called __proto__.
  const mistakes = Object.create(null) as Mistakes;
  const reader = createReader(mistakes);
  if (!isObject(body)) {
    return { mistakes: { $: [`The body must be a JSON object, but it is ${shown(body)}.`] } };
  }
  reader.refuseOthers(body, MEMBERS[kind], "");
  // The order of the calls is the order of the reported mistakes.
  const window = readWindow(reader, body);
  const query = reader.text("query", body["query"]);
  const filters = readFilters(reader, body["filters"], form);
  const asked = kind === "search" ? body : {};
  const search: Search = {
    ...window,
    query,
    filters,
    ...readGroupBy(reader, asked["groupBy"], form),
    buckets: clamp(reader.integer("buckets", asked["buckets"], 0), 0, MAX_BUCKETS),
    page: clamp(reader.integer("page", asked["page"], 0), 0, MAX_INT32),
    pageSize: clamp(reader.integer("pageSize", asked["pageSize"], DEFAULT_PAGE_SIZE), 1, MAX_PAGE_SIZE),
  };
  return Object.keys(mistakes).length > 0 ? { mistakes } : { search };
}

function readWindow(reader: Reader, body: Record<string, unknown>): Pick<Search, "from" | "to"> {
  const from = reader.time("from", body["from"]);
  const to = reader.time("to", body["to"]);
  if (to <= from) reader.wrong("to", to, "must be after from");
  return { from, to };
}

function readFilters(reader: Reader, value: unknown, form: SearchForm): Filter[] {
  const items = reader.list("filters", value);
  if (items.length > MAX_FILTERS) reader.wrong("filters", items, `must hold at most ${MAX_FILTERS} filters`);
  return items
    .slice(0, MAX_FILTERS)
    .flatMap((item, index) => readFilter(reader, `filters[${index}]`, item, form));
}

const FILTER_MEMBERS: readonly string[] = ["field", "op", "value"];

function readFilter(reader: Reader, path: string, value: unknown, form: SearchForm): Filter[] {
  if (!isObject(value)) {
    reader.wrong(path, value, "must be an object with field, op and value");
    return [];
  }
  const isNative = form === "native";
  reader.refuseOthers(value, isNative ? [...FILTER_MEMBERS, "not"] : FILTER_MEMBERS, `${path}.`);
  const name = readField(reader, `${path}.field`, value["field"], form);
  const not = isNative ? value["not"] : undefined;
  const op = OPERATORS.find((known) => known === value["op"]);
  if (op === undefined) {
    reader.wrong(`${path}.op`, value["op"], `must be one of ${OPERATORS.join(", ")}`);
  } else if (op === "cidr" && name !== "address") {
    reader.wrong(`${path}.op`, op, `cidr applies to the field ${isNative ? "address" : "ip"} only`);
  }
  if (not !== undefined && typeof not !== "boolean")
    reader.wrong(`${path}.not`, not, "must be true or false");
  const texts = readValues(reader, `${path}.value`, value["value"], op === "cidr");
  if (name === null || op === undefined) return [];
  const rest = { field: FIELDS[name], op, ...(not === true ? { not: true as const } : {}) };
  if (!isNative) return [{ ...rest, value: texts }];
  for (const text of texts) {
    const rule = refuseValue(name, op, text);
    if (rule !== null) reader.wrong(`${path}.value`, text, `for ${name} ${rule}`);
  }
  return [{ ...rest, value: texts.flatMap((text) => toStoredValues(name, op, text)) }];
}

function readValues(reader: Reader, path: string, value: unknown, areNetworks: boolean): string[] {
  const values = reader.list(path, value);
  const texts = values.filter((item) => typeof item === "string");
  if (texts.length === 0 || texts.length !== values.length) {
    reader.wrong(path, value, "must be one or more strings");
  }
  if (texts.length > MAX_VALUES) reader.wrong(path, value, `must hold at most ${MAX_VALUES} values`);
  for (const text of texts) {
    if (text.length > MAX_VALUE_CHARS) {
      reader.wrong(path, text, `must hold strings of at most ${MAX_VALUE_CHARS} characters`);
    }
    if (areNetworks && toNetwork(text) === null) {
      reader.wrong(path, text, "must be an IPv4 or IPv6 network such as 203.0.113.0/24");
    }
  }
  return texts.map(asStored);
}

function readGroupBy(
  reader: Reader,
  value: unknown,
  form: SearchForm,
): Pick<Search, "groupBy" | "groupNames"> {
  const names = new Map<FieldName, string>();
  for (const [index, item] of reader.list("groupBy", value).entries()) {
    const name = readField(reader, `groupBy[${index}]`, item, form);
    if (name !== null && !names.has(name)) names.set(name, String(item));
  }
  const groupBy = Array.from(names.keys(), (name) => FIELDS[name]);
  return form === "native" ? { groupBy, groupNames: [...names.values()] } : { groupBy };
}

/** The platform knows fewer fields, and only by its own names. */
function readField(reader: Reader, path: string, value: unknown, form: SearchForm): FieldName | null {
  const isNative = form === "native";
  const name = isNative || DIMENSIONS.some((one) => one === value) ? toFieldName(value) : null;
  if (name === null)
    reader.wrong(path, value, `must be one of ${(isNative ? FIELD_NAMES : DIMENSIONS).join(", ")}`);
  return name;
}

/** Returns the text without NUL and lone surrogates, because the stored texts hold none either. */
function asStored(text: string): string {
  return cleanText(text, Number.POSITIVE_INFINITY);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

function shown(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS).toWellFormed()}...` : text;
}

/** Returns readers of single members. Each adds mistakes to `mistakes` and returns a value of the right type. */
function createReader(mistakes: Mistakes) {
  let found = 0;
  const wrong = (field: string, value: unknown, rule: string) => {
    found += 1;
    if (found > MAX_MISTAKES) return;
    (mistakes[field] ??= []).push(`The value ${shown(value)} is not valid: ${field} ${rule}.`);
  };
  return {
    wrong,

    refuseOthers(value: Record<string, unknown>, allowed: readonly string[], path: string): void {
      const rule = `is not a property of this body; allowed are ${allowed.join(", ")}`;
      for (const key of Object.keys(value)) {
        if (!allowed.includes(key)) wrong(`${path}${shownKey(key)}`, value[key], rule);
      }
    },

    integer(field: string, value: unknown, fallback: number): number {
      if (value === undefined) return fallback;
      if (Number.isSafeInteger(value) && Number(value) <= MAX_INT32 && Number(value) >= -MAX_INT32 - 1) {
        return Number(value);
      }
      wrong(field, value, "must be a 32-bit integer");
      return fallback;
    },

    /** Reads a time. `from` and `to` are int64 (platform API spec 2.3), so a window may start before 1970. */
    time(field: string, value: unknown): number {
      if (Number.isInteger(value) && Number(value) >= -INT64_END && Number(value) < INT64_END)
        return Number(value);
      wrong(field, value, "is required and must be Unix time in milliseconds");
      return Number.NaN;
    },

    text(field: string, value: unknown): string {
      if (value === undefined || value === null) return "";
      if (typeof value !== "string") wrong(field, value, "must be a string");
      else if (value.length > MAX_VALUE_CHARS) {
        wrong(field, value, `must be at most ${MAX_VALUE_CHARS} characters`);
      } else return asStored(value);
      return "";
    },

    list(field: string, value: unknown): readonly unknown[] {
      if (value === undefined || value === null) return [];
      if (Array.isArray(value)) return value;
      wrong(field, value, "must be an array");
      return [];
    },
  };
}

function shownKey(key: string): string {
  return key.length > SHOWN_CHARS ? `${key.slice(0, SHOWN_CHARS).toWellFormed()}...` : key;
}

export const FILTER_RULE =
  "field:op:value[,value] such as ip:cidr:203.0.113.0/24; write \\, for a comma in a value";

/** A filter as a person wrote it. No part is checked. */
export interface WrittenFilter {
  readonly field: string;
  readonly op: string;
  readonly value: string[];
}

/** Splits `field:op:value[,value]` without checking the parts. The value may contain colons. Returns null without three parts. */
export function parseFilter(text: string): WrittenFilter | null {
  const match = /^([^:]*):([^:]*):(.*)$/s.exec(text);
  if (match === null) return null;
  const [, field = "", op = "", values = ""] = match;
  const value = values.split(/(?<!\\),/).map((part) => part.replaceAll("\\,", ","));
  return { field, op, value };
}

/** Returns the filter as a body of the form `native` has it, where `not` is a member. In a text it begins the operator. */
export function toNativeFilter({ op, ...filter }: WrittenFilter): WrittenFilter & { readonly not?: true } {
  return op.startsWith("not-") ? { ...filter, op: op.slice(4), not: true } : { ...filter, op };
}

/** Splits `The value 5 is not valid: to must be after from.` into its parts. */
export function splitMistake(
  field: string,
  text: string,
): { readonly field: string; readonly value?: string; readonly rule: string } {
  const middle = ` is not valid: ${field} `;
  const at = text.lastIndexOf(middle);
  if (at < 0) return { field, rule: text };
  return { field, value: text.slice("The value ".length, at), rule: text.slice(at + middle.length, -1) };
}

/** How far a window may reach into the future, because clocks differ. */
const FUTURE_TOLERANCE_MS = 5 * 60_000;

/**
 * Returns what is wrong with a window, or null. The platform's rule for the last 72 hours applies to the whole
 * retention: the end of the window must lie within it, its start may be older.
 */
export function checkWindow(
  { to }: Pick<Search, "to">,
  { nowMs, retentionDays }: { nowMs: number; retentionDays: number },
): Mistakes | null {
  const wrong = (rule: string) => ({
    to: [`The value ${to} is not valid: to must ${rule} (now is ${nowMs}).`],
  });
  if (to > nowMs + FUTURE_TOLERANCE_MS) return wrong("not lie in the future");
  if (to < startOfDay(nowMs) - retentionDays * DAY_MS)
    return wrong(`be within the last ${retentionDays} days`);
  return null;
}

/**
 * Returns what is wrong with a body that asks for too many tests; null for any other body. Checks the body as it was
 * sent, before its values are processed: 50,000 values take a few milliseconds.
 */
export function refuseManyTests(body: unknown): Mistakes | null {
  if (!isObject(body) || !Array.isArray(body["filters"])) return null;
  const { from, to } = body;
  const windowMs = typeof from === "number" && typeof to === "number" ? to - from : 0;
  const days = Math.max(1, windowMs / DAY_MS);
  const most = Math.max(ALWAYS_ALLOWED, Math.floor(Math.min(MAX_TESTS, MAX_TEST_DAYS / days)));
  const tests = countTests(body["filters"].filter(isObject));
  if (tests <= most) return null;
  const rule = `${EQUALS_PER_TEST} values of eq or in count as one test, every value of another operator as one test`;
  const detail = `The filters ask for ${tests} tests; at most ${most} are allowed for this time range (${rule}).`;
  return { filters: [`${detail} Give fewer values or a shorter time range.`] };
}
