/** A search as a condition, which each engine writes in its own SQL. */
import { columnOf, type SearchColumn } from "./fields.ts";
import type { Span } from "./horizon.ts";

/** Runs of characters in this order, with anything between them. The patterns are Postgres's, with a backslash to escape. */
export interface LikeTest {
  readonly kind: "like";
  /** Folded by `foldCase`. The first begins the text and the last ends it; either may be empty. */
  readonly literals: readonly string[];
  /**
   * Matches a text with lower-case ASCII letters in which each letter of `foldFrom` was replaced by that of `foldTo`.
   */
  readonly pattern: string;
  /** Letters beyond ASCII that the pattern holds in lower case, and their replacements by position. */
  readonly foldFrom: string;
  readonly foldTo: string;
}

/** Any of many. */
interface LikeAnyTest extends Pick<LikeTest, "foldFrom" | "foldTo"> {
  readonly kind: "likeAny";
  readonly likes: readonly LikeTest[];
  readonly patterns: readonly string[];
}

interface NetworkTest {
  readonly kind: "within" | "withinAny";
  /** Results of `toNetwork`. */
  readonly networks: readonly string[];
}

interface EqualsTest {
  readonly kind: "equals";
  readonly texts: readonly string[];
}

/** A test of whole addresses. */
export type AddressTest = EqualsTest | NetworkTest;
/** The test of one text. An unknown text counts as empty. */
export type TextTest = { readonly kind: "anything" } | AddressTest | LikeTest | LikeAnyTest;

/** A condition that holds if at least one of the columns passes at least one of the tests. */
export interface SearchClause {
  readonly columns: readonly SearchColumn[];
  readonly tests: readonly TextTest[];
  /** The condition holds if no column passes a test. */
  readonly isNegated?: true;
}

/** Asks for the events in [from, to), epoch ms, for which every clause holds. */
export interface EventQuery extends Span {
  readonly clauses: readonly SearchClause[];
}

/** How an engine writes the tests of a text. `text` is SQL for the text. */
export interface Dialect<Sql> extends Connectives<Sql> {
  readonly raw: (sql: string) => Sql;
  /** Returns SQL for a name of `columnOf`. */
  readonly toText: (column: string) => string;
  /** A condition that is neither true nor false, because a text is absent, does not hold. */
  readonly isNot: (condition: Sql) => Sql;
  /** None of the texts is empty. */
  readonly isOneOf: (text: string, texts: readonly string[], column: SearchColumn) => Sql;
  readonly isLike: (text: string, test: LikeTest | LikeAnyTest) => Sql;
  readonly isWithin: (text: string, test: NetworkTest) => Sql;
  /** Returns conditions that every older spelling of an address passes, and few others. Default: none. */
  readonly mayBeOlder?: (text: string, test: AddressTest) => readonly Sql[];
}

interface Connectives<Sql> {
  readonly and: (conditions: readonly Sql[]) => Sql;
  readonly or: (conditions: readonly Sql[]) => Sql;
}

/** Returns how an engine connects conditions. For an empty list `or` returns `false`: no test means no match. */
export function connectives<Sql>(
  raw: (sql: string) => Sql,
  join: (parts: readonly Sql[], separator: string) => Sql,
): Connectives<Sql> {
  const connect = (word: string, none: string) => (conditions: readonly Sql[]) =>
    conditions.length === 0 ? raw(none) : join([raw("("), join(conditions, ` ${word} `), raw(")")], "");
  return { and: connect("and", "true"), or: connect("or", "false") };
}

/** Returns the condition for events that pass every clause. A null counts as ''. */
export function toCondition<Sql>(clauses: readonly SearchClause[], dialect: Dialect<Sql>): Sql {
  const { and, or, isNot, toText } = dialect;
  const passesOf = (column: SearchColumn, test: TextTest) => {
    const text = toText(columnOf(column));
    const passes = toTest(column, text, test, dialect);
    return column === "ip" ? addOlder(passes, text, test, dialect) : passes;
  };
  return and(
    clauses.map(({ columns, tests, isNegated }) => {
      const passes = or(columns.flatMap((column) => tests.map((test) => passesOf(column, test))));
      return isNegated === true ? isNot(passes) : passes;
    }),
  );
}

function toTest<Sql>(column: SearchColumn, text: string, test: TextTest, dialect: Dialect<Sql>): Sql {
  const { raw, or, isOneOf, isLike, isWithin } = dialect;
  switch (test.kind) {
    case "anything":
      return raw("true");
    case "equals": {
      const known = test.texts.filter((wanted) => wanted !== "");
      return or([
        ...(known.length > 0 ? [isOneOf(text, known, column)] : []),
        ...(known.length < test.texts.length ? [raw(`${text} is null or ${text} = ''`)] : []),
      ]);
    }
    case "within":
    case "withinAny":
      return isWithin(text, test);
    case "like":
    case "likeAny":
      return isLike(text, test);
    default:
      return test satisfies never;
  }
}

/** Removes port, brackets and the prefix of a mapped address. */
const DRESSED = String.raw`^\[?(?:::ffff:)?([0-9.]+|[0-9a-f:]+)(?:\]|\]:[0-9]+|:[0-9]+)?$`;

/**
 * Returns the condition also for addresses that were stored before `toPlainAddress` was applied: with a port, brackets, a
 * list or in the mapped form. Few rows have one, so its test may take longer. A test of a part of the text finds it anyway.
 */
function addOlder<Sql>(passes: Sql, text: string, test: TextTest, dialect: Dialect<Sql>): Sql {
  if (test.kind !== "equals" && test.kind !== "within" && test.kind !== "withinAny") return passes;
  const { raw, and, or, mayBeOlder } = dialect;
  const has = (part: string) => `strpos(${text}, '${part}') > 0`;
  const isOlder = raw(`(${has(",")} or ${has(":")} and (${has(".")} or ${has("[")}))`);
  const plain = `regexp_replace(lower(trim(split_part(${text}, ',', 1))), '${DRESSED}', '\\1')`;
  return or([
    passes,
    and([...(mayBeOlder?.(text, test) ?? []), isOlder, toTest("ip", plain, test, dialect)]),
  ]);
}
