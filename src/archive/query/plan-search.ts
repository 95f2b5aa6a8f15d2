import { cleanText, MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "../../lib/clean-text.ts";
import { bucketStarts } from "./bucket-starts.ts";
import { countTests, FEW_TESTS, withoutDuplicates } from "./count-tests.ts";
import { toNetwork } from "./network.ts";
import type { Dimension, Filter, Search } from "./search.ts";
import { containsTest, joinTests, type TextTest, wildcardTest } from "./text-test.ts";

/** What free text looks at: a rule's name is its message. */
const QUERY_COLUMNS = ["ip", "ruleId", "url", "ua", "message"] as const;
/** Few enough values that each can be counted in advance. */
const COUNTED_DIMENSIONS: readonly (Dimension | "message")[] = [
  "feature",
  "ruleId",
  "asn",
  "country",
  "action",
];

/** At least one of the columns passes at least one of the tests. */
interface Clause {
  readonly columns: readonly (Dimension | "message")[];
  readonly tests: readonly TextTest[];
}

/** A search as it is run: every clause must hold. */
export interface SearchPlan
  extends Pick<Search, "from" | "to" | "groupBy" | "buckets" | "page" | "pageSize"> {
  readonly clauses: readonly Clause[];
  /** As `bucketStarts` says it. */
  readonly bucketStarts: readonly number[];
  /** The rules that are asked for, where nothing else is; null for every rule, undefined when more is asked than rules. */
  readonly rules: readonly string[] | null | undefined;
  /** Whether counts of closed days hold the answer: groups by one dimension they know, about which alone is asked. */
  readonly isCountable: boolean;
  /** Whether what is noted of every event of closed days holds the answer: only about such dimensions is asked, each by itself. */
  readonly isCoded: boolean;
}

/**
 * What is asked of which column, in a form that storage can answer without knowing the search language. For who sees
 * addresses only masked, free text does not look at them: whether `207` is found would tell the rest of one.
 */
export function planSearch(search: Search, { isMasked = false } = {}): SearchPlan {
  const { to, groupBy, buckets, page, pageSize } = search;
  // No event is older than 1970, and Postgres cannot hold a time as early as an int64 can say.
  const from = Math.max(search.from, 0);
  const filters = withoutDuplicates(search.filters);
  const isMany = countTests(filters) > FEW_TESTS;
  const asked: Clause[] = filters.map((filter) => ({
    columns: [filter.field],
    tests: isMany ? joinTests(toTests(filter)) : toTests(filter),
  }));
  const queried = QUERY_COLUMNS.filter((column) => !isMasked || column !== "ip");
  asked.push({ columns: queried, tests: [containsTest(search.query)] });
  const clauses = asked.filter(({ tests }) => !tests.some(({ kind }) => kind === "anything"));
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

/** A text that was cut when it was stored is found by its whole as well. */
function asKept(field: Dimension, text: string): string {
  return cleanText(text, field === "url" || field === "ua" ? MAX_TEXT_CHARS : MAX_DIMENSION_CHARS);
}

/** The rules that pass every clause. */
function readRules(clauses: readonly Clause[]): readonly string[] | null | undefined {
  const asked = clauses.map(({ columns: [column], tests: [test] }) =>
    column === "ruleId" && test?.kind === "equals" ? test.texts : undefined,
  );
  return asked.reduce<readonly string[] | null | undefined>((known, texts) => {
    if (known === undefined || texts === undefined) return undefined;
    return known === null ? texts : known.filter((rule) => texts.includes(rule));
  }, null);
}
