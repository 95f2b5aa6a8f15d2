import fc from "fast-check";
import { expect, test } from "vitest";
import { stripMarkdown } from "#lib/strip-markdown.ts";

test.each([
  ["## Assessment ##", "Assessment"],
  ["**Recommendation:** keep the rule", "Recommendation: keep the rule"],
  ["__bold__, _italic_, ***both***, **a *b* c** and ~~struck~~", "bold, italic, both, a b c and struck"],
  ["**block `AS64500`** with `deny *`", "block AS64500 with deny *"],
  ["* one\n+ two\n- three\n1. four", "- one\n- two\n- three\n1. four"],
  ["> quoted", "quoted"],
  ["see [the runbook](https://wiki.example/a_b_c)", "see the runbook (https://wiki.example/a_b_c)"],
  ["| IP | Count |\n|:---|---:|\n| a | 1 |", "IP | Count\na | 1"],
  ["```sh\nrm -rf /\n```", "rm -rf /"],
  ["above\n---\nbelow\n***", "above\nbelow"],
  ["\\*not emphasis\\*", "*not emphasis*"],
  [
    "**Recommendation:** keep it. The text has no place in requests to\nordinary pages.\nUser agent: curl",
    "Recommendation: keep it. The text has no place in requests to ordinary pages.\nUser agent: curl",
  ],
])("stripMarkdown turns %j into %j", (marked, plain) => {
  expect(stripMarkdown(marked)).toBe(plain);
});

test.each([
  "rules 942* and 941*",
  "hosts *.a.example,*.b.example",
  "3 * 4 * 5 and 2 ** 8",
  "REQUEST_HEADERS_NAMES and snake_case",
  "about ~200 events ~ 3 a second",
  "1' OR '1'='1' -- x",
  "a | b",
  "**unclosed",
  `${"a long first line that ends a sentence ".repeat(2)}here.\nanother`,
  `${"a long line before a label ".repeat(3)}&\nRequested URL: /a`,
  `${"a long line before a list ".repeat(3)}&\n- one`,
  `| ${"a long row of a table ".repeat(3)}| b\n| c | d`,
])("stripMarkdown leaves %j as it is", (text) => {
  expect(stripMarkdown(text)).toBe(text);
});

test("stripMarkdown keeps the lines of code", () => {
  const code = `curl ${"--header a ".repeat(8)}c\ncurl b`;
  expect(stripMarkdown(`\`\`\`sh\n${code}\n\`\`\``)).toBe(code);
});

test("stripMarkdown keeps every letter and digit of a text without lines that only draw", () => {
  const unit = fc.constantFrom(
    "a",
    "B",
    "7",
    " ",
    "*",
    "_",
    "`",
    "~",
    "[",
    "]",
    "(",
    ")",
    "#",
    ">",
    "\\",
    "!",
  );
  const lettersOf = (text: string) => text.replace(/[^a-zA-Z0-9]/g, "");
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 60 }), (text) => {
      // A fence may name a language, which goes with it.
      fc.pre(!/^\s*(?:`{3,}|~{3,})/.test(text));
      expect(lettersOf(stripMarkdown(text))).toBe(lettersOf(text));
    }),
    { seed: 14 },
  );
});

test.each(["**a ", "[", "[a](", "`", "_a ", "*a", "![", "~~a ", " #", "|", "- ", "\\*", "> ", "."])(
  "stripMarkdown reads 100,000 characters of %j within a second",
  (unit) => {
    const startedAt = performance.now();
    stripMarkdown(`${unit.repeat(Math.ceil(99_990 / unit.length))}x`);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  },
);
