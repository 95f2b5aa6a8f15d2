import { cleanText, MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "#lib/text.ts";
import type { Field, Filter } from "#model/fields.ts";
import { toPlainAddress } from "#model/ip-address.ts";
import { countTests, FEW_TESTS, withoutDuplicates } from "./count-tests.ts";
import { toNetwork } from "./network.ts";
import type { Search } from "./search.ts";
import { containsTest, joinTests, type TextTest, wildcardTest } from "./text-test.ts";

/** Columns that free text searches. A rule's name is its message. */
const QUERY_COLUMNS = ["ip", "ruleId", "url", "ua", "message"] as const;

/** A condition that holds if at least one of the columns passes at least one of the tests. */
interface Clause {
  readonly columns: readonly (Exclude<Field, "method"> | "message")[];
  readonly tests: readonly TextTest[];
  /** The condition holds if no column passes a test. */
  readonly isNegated?: true;
}

/** A search in the form in which it runs: every clause must hold. */
export interface SearchPlan
  extends Pick<Search, "from" | "to" | "groupBy" | "buckets" | "page" | "pageSize"> {
  readonly clauses: readonly Clause[];
  /** Tests of the method, which only records have. Every one must hold. */
  readonly methodClauses: readonly Omit<Clause, "columns">[];
  readonly groupNames: readonly string[];
  /** Start of the first bucket. May be before 1970, unlike `from`. */
  readonly bucketsFrom: number;
}

/**
 * Returns the tests per column in a form that storage can answer without knowing the search language. With `isMasked`
 * free text does not search addresses, because whether `207` is found would reveal the hidden part.
 */
export function planSearch(search: Search, { isMasked = false } = {}): SearchPlan {
  const { to, groupBy, groupNames = groupBy, buckets, page, pageSize } = search;
  // No event is older than 1970, and Postgres cannot hold a time as early as an int64 can.
  const from = Math.max(search.from, 0);
  const filters = withoutDuplicates(search.filters);
  const isMany = countTests(filters) > FEW_TESTS;
  const toClause = (filter: Filter) => ({
    tests: isMany ? joinTests(toTests(filter)) : toTests(filter),
    ...(filter.not === true ? { isNegated: true as const } : {}),
  });
  const asked: Clause[] = [];
  const methodClauses: SearchPlan["methodClauses"][number][] = [];
  for (const filter of filters)
    if (filter.field === "method") methodClauses.push(toClause(filter));
    else asked.push({ columns: [filter.field], ...toClause(filter) });
  const queried = QUERY_COLUMNS.filter((column) => !isMasked || column !== "ip");
  asked.push({ columns: queried, tests: [containsTest(search.query)] });
  const clauses = asked.filter(
    ({ tests, isNegated }) => isNegated === true || !tests.some(({ kind }) => kind === "anything"),
  );
  return {
    from,
    to,
    groupBy,
    groupNames,
    buckets,
    page,
    pageSize,
    clauses,
    methodClauses,
    bucketsFrom: search.from,
  };
}

/** Returns the tests of clauses alone; clauses about the method are left out. */
export function planFilters(filters: readonly Filter[]): SearchPlan["clauses"] {
  const flat = { query: "", groupBy: [], buckets: 0, page: 0, pageSize: 1 };
  return planSearch({ ...flat, from: 0, to: 0, filters }).clauses;
}

/** Returns whether the answer needs the records of the events. */
export function asksMethod({
  groupBy,
  methodClauses,
}: Pick<SearchPlan, "groupBy" | "methodClauses">): boolean {
  return methodClauses.length > 0 || groupBy.includes("method");
}

function toTests({ field, op, value }: Filter): readonly TextTest[] {
  switch (op) {
    case "eq":
    case "in":
      return [{ kind: "equals", texts: [...new Set(value.flatMap((text) => asKept(field, text)))] }];
    case "contains":
      return value.map(containsTest);
    case "wildcard":
      return value.map(wildcardTest);
    case "cidr":
      return [{ kind: "within", networks: [...new Set(value.flatMap((text) => toNetwork(text) ?? []))] }];
    default:
      return op satisfies never;
  }
}

/**
 * Returns the text as it was stored, so that a text that was cut is found by its full length as well. An address is
 * stored without port, brackets and list, and in older rows with them.
 */
function asKept(field: Field, text: string): string[] {
  const kept = cleanText(
    text,
    ["url", "ua", "host", "path"].includes(field) ? MAX_TEXT_CHARS : MAX_DIMENSION_CHARS,
  );
  return field === "ip" ? [toPlainAddress(kept), kept] : [kept];
}
