import fc from "fast-check";
import { expect, test } from "vitest";
import { classifyAction, createClassifier } from "#model/action-class.ts";

const toFate = createClassifier();

test.each([
  ["block", "blocked"],
  ["Blocked", "blocked"],
  ["deny", "blocked"],
  ["DENIED", "blocked"],
  ["drop", "blocked"],
  ["rate-limit", "blocked"],
  ["rate_limited", "blocked"],
  ["Rate Limited", "blocked"],
  ["403", "blocked"],
  ["429", "blocked"],
  ["challenge", "challenged"],
  ["managed_challenge", "challenged"],
  ["CAPTCHA", "challenged"],
  ["log", "logged"],
  ["allow", "logged"],
  [" Bypass ", "logged"],
  ["monitor", "logged"],
  ["unblock", "other"],
  ["blocking", "other"],
  ["not blocked", "other"],
  ["log4shell", "other"],
  ["rewrite", "other"],
  ["200", "other"],
  ["4030", "other"],
  ["4\u0661\u0661", "other"],
  ["bloc\u212a", "other"],
  ["constructor", "other"],
  ["", "other"],
  [null, "other"],
] as const)("the request of an event with the action %j is %s", (action, expected) => {
  expect(toFate(action)).toBe(expected);
});

test("the fate of a request is the class of its action wherever buckets count one", () => {
  for (const word of ["block", "blocked", "log", "logged", "challenge", "challenged"])
    expect(toFate(word)).toBe(classifyAction(word));
});

test("any other text is not known, however long it is", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 20 }), (text) => {
      expect(toFate(text)).toBe("other");
    }),
  );
  expect(toFate(`block${" ".repeat(1_000_000)}ed`)).not.toBe("logged");
});

test("other lists replace the shipped ones, and a word in two lists is stopped", () => {
  const own = createClassifier({
    stopped: ["Tar Pit"],
    challenged: ["quiz"],
    through: ["tarpit", "quiz", "tag"],
  });
  expect(["tarpit", "quiz", "tag", "block"].map(own)).toEqual(["blocked", "challenged", "logged", "other"]);
});
