import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { coverageState, TRANSITIONS } from "#proof/rules/hour-status.ts";

test("docs/how-it-works.md shows exactly the transitions of the coverage states", () => {
  const docs = readFileSync(path.join(import.meta.dirname, "..", "..", "docs", "how-it-works.md"), "utf8");
  const rows = [...docs.matchAll(/^\| (open|reopened|sealed|gap) \| (\w+) \| (.+) \|$/gm)];
  const shown = rows.map(([, from, to, when]) => [from, to, when]);
  const expected = Object.entries(TRANSITIONS).flatMap(([from, targets]) =>
    Object.entries(targets).map(([to, when]) => [from, to, when]),
  );
  expect(shown).toEqual(expected);
});

test.each([
  ["open", null, "open"],
  ["open", 1, "reopened"],
  ["sealed", 1, "sealed"],
  ["gap", 1, "gap"],
] as const)("an hour that is %s, reopened at %s, is %s", (state, reopenedAt, expected) => {
  expect(coverageState({ state, reopenedAt })).toBe(expected);
});
