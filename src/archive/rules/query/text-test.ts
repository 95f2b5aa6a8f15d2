/** The tests of one text. */
import type { LikeTest, TextTest } from "#model/search-condition.ts";

/** Returns the test whether a text contains another, ignoring case. */
export function containsTest(needle: string): TextTest {
  return needle === "" ? { kind: "anything" } : likeTest(["", needle, ""]);
}

/**
 * Returns the test for a pattern in which `*` matches any run of characters, even none. Ignores case. No other
 * character is special.
 */
export function wildcardTest(pattern: string): TextTest {
  if (pattern === "") return { kind: "equals", texts: [""] };
  if (/^\*+$/.test(pattern)) return { kind: "anything" };
  return likeTest(pattern.split(/\*+/));
}

function likeTest(literals: readonly string[]): LikeTest {
  const folded = literals.map(foldCase);
  const variants = new Map<string, string>();
  for (const character of new Set(folded.join(""))) {
    for (const variant of upperForms().get(character) ?? []) variants.set(variant, character);
  }
  return {
    kind: "like",
    literals: folded,
    pattern: folded.map(escapeLike).join("%"),
    foldFrom: [...variants.keys()].join(""),
    foldTo: [...variants.values()].join(""),
  };
}

function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, String.raw`\$&`);
}

const NOT_ASCII = /[\u0080-\uffff]/;

/**
 * Returns lower case, character by character, like `toLowerCase` except for three letters. The sigma has one lower
 * case here: JavaScript makes it `ς` at the end of a word, so that half a word would not be found in the whole. The
 * Kelvin sign and the dotted capital I stay unchanged: their lower case is ASCII, and every search for a `k` or an
 * `i` would have to look for them in every text.
 */
export function foldCase(text: string): string {
  // Most texts of requests are ASCII, and this is many times faster.
  if (!NOT_ASCII.test(text)) return text.toLowerCase();
  return Array.from(text, foldCharacter).join("");
}

function foldCharacter(character: string): string {
  if (character === "ς") return "σ";
  return character === "\u212A" || character === "\u0130" ? character : character.toLowerCase();
}

let knownForms: ReadonlyMap<string, readonly string[]> | undefined;

/** Letters beyond ASCII by their folded form. Longwatch folds them because not every locale of Postgres does. */
const upperForms = () => (knownForms ??= listUpperForms());

function listUpperForms(): Map<string, string[]> {
  const forms = new Map<string, string[]>();
  for (let code = 0x80; code <= 0x1_ff_ff; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const character = String.fromCodePoint(code);
    const folded = foldCharacter(character);
    if (folded === character) continue;
    const known = forms.get(folded);
    if (known === undefined) forms.set(folded, [character]);
    else known.push(character);
  }
  return forms;
}

/** Returns whether a text passes a test. No text passes a test of networks. */
export function passesTest(test: TextTest, text: string): boolean {
  switch (test.kind) {
    case "anything":
      return true;
    case "equals":
      return test.texts.includes(text);
    case "like":
      return matchesLiterals(test, foldCase(text));
    case "likeAny":
      return test.likes.some((like) => matchesLiterals(like, foldCase(text)));
    case "within":
    case "withinAny":
      return false;
    default:
      return test satisfies never;
  }
}

/** Takes each literal at its first place, so the time is linear in the text. `text` is folded. */
export function matchesLiterals({ literals }: LikeTest, text: string): boolean {
  const [first = "", ...rest] = literals;
  const last = rest.pop();
  if (last === undefined) return text === first;
  let end = text.startsWith(first) ? first.length : -1;
  for (const literal of rest) {
    const place = end < 0 ? -1 : text.indexOf(literal, end);
    end = place < 0 ? -1 : place + literal.length;
  }
  return end >= 0 && text.length - last.length >= end && text.endsWith(last);
}

/** Joins the tests of a column into one per kind, which is one parameter of a statement. */
export function joinTests(given: readonly TextTest[]): readonly TextTest[] {
  const tests = given.map((test) =>
    test.kind === "within" ? { ...test, kind: "withinAny" as const } : test,
  );
  const likes = tests.filter((test) => test.kind === "like");
  if (likes.length < 2) return tests;
  const folds = new Map(likes.flatMap(({ foldFrom, foldTo }) => pairUp(foldFrom, foldTo)));
  const joined: TextTest = {
    kind: "likeAny",
    likes,
    patterns: [...new Set(likes.map(({ pattern }) => pattern))],
    // Folding a letter that one pattern does not hold is unnecessary for that pattern but harmless.
    foldFrom: [...folds.keys()].join(""),
    foldTo: [...folds.values()].join(""),
  };
  return [...tests.filter((test) => test.kind !== "like"), joined];
}

function pairUp(from: string, to: string): [string, string][] {
  const folded = Array.from(to);
  return Array.from(from, (letter, index) => [letter, folded[index] ?? letter]);
}
