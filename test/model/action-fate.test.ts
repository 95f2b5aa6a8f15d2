import fc from "fast-check";
import { expect, test } from "vitest";
import { BUILT_IN_ACTIONS, classifyAction, createActionStates } from "#model/action-class.ts";

const { classify: toFate } = BUILT_IN_ACTIONS;

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

test("words of the configuration replace the state of built-in words, and a challenge stays one", () => {
  const { classify } = createActionStates({
    stopped: ["Tar Pit", "captcha", "monitor"],
    through: ["quiz", "404"],
  });
  expect(["tarpit", "CAPTCHA", "Monitor", "quiz", "404", "403", "deny", "tag"].map(classify)).toEqual([
    "blocked",
    "challenged",
    "blocked",
    "logged",
    "logged",
    "blocked",
    "blocked",
    "other",
  ]);
});
