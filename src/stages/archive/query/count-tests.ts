import { isObject } from "#lib/json.ts";
import { DAY_MS } from "#lib/units.ts";
import type { Filter } from "#model/fields.ts";
import type { Mistakes } from "./search.ts";

/** Maximum number of tests per event in one request, for any time range. */
const MAX_TESTS = 5_000;
/** Maximum number of tests times days of the time range. */
const MAX_TEST_DAYS = 20_000;
/** This many tests are allowed for any time range, because the estimate by events limits their cost. */
const ALWAYS_ALLOWED = 200;
/** Up to this many tests of a request are separate conditions in its statements, so that indexes can answer them. */
export const FEW_TESTS = 16;
/** Equal texts are looked up in a hash table: this many cost about as much as one search within a text. */
const EQUALS_PER_TEST = 50;

interface Asked {
  readonly field?: unknown;
  readonly op?: unknown;
  readonly value?: unknown;
  readonly not?: unknown;
}

/** Returns how many tests the filters require per event. A duplicate value or filter counts once. */
export function countTests(filters: readonly Asked[]): number {
  const counted = new Set<string>();
  let tests = 0;
  for (const { field, op, value, not } of filters) {
    const values = new Set<unknown>(Array.isArray(value) ? value : []);
    const name = JSON.stringify([field, op, not, ...values]);
    if (counted.has(name)) continue;
    counted.add(name);
    tests += op === "eq" || op === "in" ? Math.ceil(values.size / EQUALS_PER_TEST) : values.size;
  }
  return tests;
}

/** Returns the filters without duplicates, and each value of a filter once. */
export function withoutDuplicates(filters: readonly Filter[]): readonly Filter[] {
  const distinct = filters.map((filter) => ({ ...filter, value: [...new Set(filter.value)] }));
  return [...new Map(distinct.map((filter) => [JSON.stringify(filter), filter])).values()];
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
