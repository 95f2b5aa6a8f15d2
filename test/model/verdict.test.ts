import { expect, test } from "vitest";
import { VERDICTS, type VerdictWord } from "#model/kinds.ts";
import { turns } from "#model/verdict.ts";

const classOf = (word: VerdictWord) => (word === "scanner" ? "attack" : word);

test.each(VERDICTS)("a first verdict that says %s turns unless it is unclear", (said) => {
  expect(turns(null, { said })).toBe(said !== "unclear");
});

test.each(VERDICTS.flatMap((before) => VERDICTS.map((now) => [before, now] as const)))(
  "a verdict turns from %s to %s only if the class is another one and is known",
  (before, now) => {
    const isNews = now !== "unclear" && classOf(before) !== classOf(now);
    expect(turns({ said: before }, { said: now })).toBe(isNews);
  },
);

test("a verdict does not turn from an attack to a scanner, or back", () => {
  expect(turns({ said: "attack" }, { said: "scanner" })).toBe(false);
  expect(turns({ said: "scanner" }, { said: "attack" })).toBe(false);
});

test("a verdict turns from an unclear one to a misfire, and does not turn from a misfire to an unclear one", () => {
  expect(turns({ said: "unclear" }, { said: "misfire" })).toBe(true);
  expect(turns({ said: "misfire" }, { said: "unclear" })).toBe(false);
});
