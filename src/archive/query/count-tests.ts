import { isObject } from "../../lib/is-object.ts";
import { DAY_MS } from "../../lib/units.ts";
import type { Filter, Mistakes } from "./search.ts";

/** Tests of a request that an event may have to pass, whatever the time range. */
const MAX_TESTS = 5_000;
/** Tests times days of the time range. */
const MAX_TEST_DAYS = 20_000;
/** As many are allowed for any time range: the estimate by events bounds their cost. */
const ALWAYS_ALLOWED = 200;
/** As many tests of a request stand in its statements one by one, where indexes can answer them. */
export const FEW_TESTS = 16;
/** Equal texts are looked up in a hash table: as many cost about as much as one search in a text. */
const EQUALS_PER_TEST = 50;

interface Asked {
  readonly field?: unknown;
  readonly op?: unknown;
  readonly value?: unknown;
}

/** Returns how many tests the filters ask of one event. A value or a filter that is there twice counts once. */
export function countTests(filters: readonly Asked[]): number {
  const counted = new Set<string>();
  let tests = 0;
  for (const { field, op, value } of filters) {
    const values = new Set<unknown>(Array.isArray(value) ? value : []);
    const name = JSON.stringify([field, op, ...values]);
    if (counted.has(name)) continue;
    counted.add(name);
    tests += op === "eq" || op === "in" ? Math.ceil(values.size / EQUALS_PER_TEST) : values.size;
  }
  return tests;
}

/** Filters without those that are there twice; each value of a filter once. */
export function withoutDuplicates(filters: readonly Filter[]): readonly Filter[] {
  const distinct = filters.map((filter) => ({ ...filter, value: [...new Set(filter.value)] }));
  return [...new Map(distinct.map((filter) => [JSON.stringify(filter), filter])).values()];
}

/**
 * Says what is wrong with a body that asks for too many tests; null for any other body. Looks at the body as it was
 * sent, before anything is made of its values: 50,000 values take a few milliseconds.
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
