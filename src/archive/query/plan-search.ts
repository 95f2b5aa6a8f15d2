import { cleanText, MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "../../lib/clean-text.ts";
import { bucketStarts } from "./bucket-starts.ts";
import { countTests, FEW_TESTS, withoutDuplicates } from "./count-tests.ts";
import { toNetwork } from "./network.ts";
import type { Dimension, Filter, Search } from "./search.ts";
import { containsTest, joinTests, type TextTest, wildcardTest } from "./text-test.ts";

/** Columns that free text searches. A rule's name is its message. */
const QUERY_COLUMNS = ["ip", "ruleId", "url", "ua", "message"] as const;
/** Dimensions with few enough values to count each in advance. */
const COUNTED_DIMENSIONS: readonly (Dimension | "message")[] = [
  "feature",
  "ruleId",
  "asn",
  "country",
  "action",
];

/** A condition that holds if at least one of the columns passes at least one of the tests. */
interface Clause {
  readonly columns: readonly (Dimension | "message")[];
  readonly tests: readonly TextTest[];
  /** The condition holds if no column passes a test. */
  readonly isNegated?: true;
}

/** A search in the form in which it runs: every clause must hold. */
export interface SearchPlan
  extends Pick<Search, "from" | "to" | "groupBy" | "buckets" | "page" | "pageSize"> {
  readonly clauses: readonly Clause[];
  /** The result of `bucketStarts`. */
  readonly bucketStarts: readonly number[];
  /** The requested rules if the search has no other condition; null for every rule, undefined for any other search. */
  readonly rules: readonly string[] | null | undefined;
  /**
   * True if the counts of closed days hold the answer: groups by one dimension that they contain, with conditions on
   * that one only.
   */
  readonly isCountable: boolean;
  /**
   * True if the noted values of closed days hold the answer: the conditions concern only such dimensions, each by
   * itself.
   */
  readonly isCoded: boolean;
}

/**
 * Returns the tests per column in a form that storage can answer without knowing the search language. With `isMasked`
 * free text does not search addresses, because whether `207` is found would reveal the hidden part.
 */
export function planSearch(search: Search, { isMasked = false } = {}): SearchPlan {
  const { to, groupBy, buckets, page, pageSize } = search;
  // No event is older than 1970, and Postgres cannot hold a time as early as an int64 can.
  const from = Math.max(search.from, 0);
  const filters = withoutDuplicates(search.filters);
  const isMany = countTests(filters) > FEW_TESTS;
  const asked: Clause[] = filters.map((filter) => ({
    columns: [filter.field],
    tests: isMany ? joinTests(toTests(filter)) : toTests(filter),
    ...(filter.not === true ? { isNegated: true } : {}),
  }));
  const queried = QUERY_COLUMNS.filter((column) => !isMasked || column !== "ip");
  asked.push({ columns: queried, tests: [containsTest(search.query)] });
  const clauses = asked.filter(
    ({ tests, isNegated }) => isNegated === true || !tests.some(({ kind }) => kind === "anything"),
  );
  const [grouped] = groupBy;
  const isCounted = (column: Dimension | "message") => COUNTED_DIMENSIONS.includes(column);
  return {
    from,
    to,
    groupBy,
    buckets,
    page,
    pageSize,
    clauses,
    bucketStarts: bucketStarts(search),
    rules: readRules(clauses),
    isCountable:
      groupBy.length === 1 &&
      groupBy.every(isCounted) &&
      clauses.every((clause) => clause.columns.every((column) => column === grouped)),
    isCoded:
      groupBy.length > 0 &&
      groupBy.every(isCounted) &&
      clauses.every(({ columns }) => columns.length === 1 && columns.every(isCounted)),
  };
}

function toTests({ field, op, value }: Filter): readonly TextTest[] {
  switch (op) {
    case "eq":
    case "in":
      return [{ kind: "equals", texts: [...new Set(value.map((text) => asKept(field, text)))] }];
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

/** Returns the text as it was stored, so that a text that was cut is found by its full length as well. */
function asKept(field: Dimension, text: string): string {
  return cleanText(text, field === "url" || field === "ua" ? MAX_TEXT_CHARS : MAX_DIMENSION_CHARS);
}

/** Returns the rules that pass every clause. */
function readRules(clauses: readonly Clause[]): readonly string[] | null | undefined {
  const asked = clauses.map(({ columns: [column], tests: [test], isNegated }) =>
    column === "ruleId" && test?.kind === "equals" && isNegated !== true ? test.texts : undefined,
  );
  return asked.reduce<readonly string[] | null | undefined>((known, texts) => {
    if (known === undefined || texts === undefined) return undefined;
    return known === null ? texts : known.filter((rule) => texts.includes(rule));
  }, null);
}
