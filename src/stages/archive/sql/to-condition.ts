import { clampTime } from "#lib/units.ts";
import { toFileColumnSql } from "#model/archive-layout.ts";
import { columnOf, toOlderSpelling } from "#model/fields.ts";
import type { Span } from "#model/horizon.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import type { LikeTest, TextTest } from "../query/text-test.ts";
import { isWithinAny } from "./is-within.ts";
import { and, bound, duck, join, or, type Piece, raw } from "./piece.ts";

/** DuckDB's `lower` makes these an ASCII `k` and `i`. `foldCase` leaves them as they are. */
const KELVIN = "\u212A";
const DOTTED_I = "\u0130";
/** Noncharacters, of which one that the needle does not contain stands for each of the two. */
const STAND_INS = ["\uFDD0", "\uFDD1", "\uFDD2", "\uFDD3"];

/** Returns the condition for events of a span. Files are ordered by time, so it decides what is read of them. */
export function toTimeCondition({ from, to }: Span): Piece {
  const moment = (ms: number) => raw(`to_timestamp(${clampTime(ms)} / 1000.0)`);
  return duck`occurred_at >= ${moment(from)} and occurred_at < ${moment(to)}`;
}

/** Returns the condition for events of files of a version that pass every clause. A null counts as ''. */
export function toClauses({ clauses }: Pick<SearchPlan, "clauses">, format: number): Piece {
  return and(
    clauses.map(({ columns, tests, isNegated }) => {
      const passes = or(
        columns.flatMap((column) =>
          tests.map((test) => toTest(toFileColumnSql(columnOf(column), format), test)),
        ),
      );
      // A test of an absent text is neither true nor false.
      return isNegated === true ? duck`coalesce(not (${passes}), true)` : passes;
    }),
  );
}

function toTest(column: string, test: TextTest): Piece {
  const passes = toTextTest(column, test);
  const older = toOlderSpelling(column, column, test);
  return older === null ? passes : or([passes, and([raw(older.isOlder), toTextTest(older.plain, test)])]);
}

function toTextTest(column: string, test: TextTest): Piece {
  switch (test.kind) {
    case "anything":
      return raw("true");
    case "equals":
      return toEquals(column, test.texts);
    case "within":
    case "withinAny":
      return isWithinAny(column, test.networks);
    case "like":
      return toLike(column, test);
    case "likeAny":
      return or(test.likes.map((like) => toLike(column, like)));
    default:
      return test satisfies never;
  }
}

function toEquals(column: string, texts: readonly string[]): Piece {
  const known = texts.filter((text) => text !== "");
  const tests: Piece[] = [];
  if (known.length > 0) tests.push(duck`${raw(column)} in (${join(known.map(bound), ", ")})`);
  if (known.length < texts.length) tests.push(raw(`${column} is null or ${column} = ''`));
  return or(tests);
}

/**
 * `lower` alone is fast, because it is computed once for each text of a file's dictionary. What it folds too much is
 * looked at again, exactly, in the few texts that it finds.
 */
function toLike(column: string, like: LikeTest): Piece {
  const needle = like.literals.join("");
  const [kelvin = "", dotted = ""] = STAND_INS.filter((one) => !needle.includes(one));
  const standIn = (text: string) => text.replaceAll(KELVIN, kelvin).replaceAll(DOTTED_I, dotted);
  const isExact = () =>
    matches(
      fold(raw(`lower(translate(${column}, '${KELVIN}${DOTTED_I}', '${kelvin}${dotted}'))`), like),
      like.literals.map(standIn),
    );
  if (standIn(needle) !== needle) return isExact();
  const isFound = matches(fold(raw(`lower(${column})`), like), like.literals);
  if (!/[ki]/.test(needle)) return isFound;
  const isPlain = raw(`not contains(${column}, '${KELVIN}') and not contains(${column}, '${DOTTED_I}')`);
  return duck`(${isFound} and (${isPlain} or ${isExact()}))`;
}

/** DuckDB knows no final sigma, and not the newest letters. */
function fold(lower: Piece, { foldFrom, foldTo }: LikeTest): Piece {
  return foldFrom === "" ? lower : duck`translate(${lower}, ${bound(foldFrom)}, ${bound(foldTo)})`;
}

/** Between the literals any text may be. Most tests need no pattern. */
function matches(text: Piece, literals: readonly string[]): Piece {
  const [first = "", second = "", third = ""] = literals;
  if (literals.length === 1) return duck`${text} = ${bound(first)}`;
  if (literals.length === 2 && second === "") return duck`starts_with(${text}, ${bound(first)})`;
  if (literals.length === 2 && first === "") return duck`suffix(${text}, ${bound(second)})`;
  if (literals.length === 3 && first === "" && third === "") return duck`contains(${text}, ${bound(second)})`;
  // Linear in the text, whatever a client asks and an attacker has sent. DuckDB's LIKE tries every place of every
  // literal, and cannot be interrupted meanwhile.
  const pattern = literals
    .map((literal) => literal.replaceAll(/[\\^$.|?*+()[\]{}]/g, String.raw`\$&`))
    .join(".*");
  return duck`regexp_full_match(${text}, ${bound(pattern)}, 's')`;
}
