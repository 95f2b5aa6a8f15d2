import type { ActionClass } from "./kinds.ts";

const CLASS_OF_WORD: ReadonlyMap<string, ActionClass> = new Map([
  ["block", "blocked"],
  ["blocked", "blocked"],
  ["log", "logged"],
  ["logged", "logged"],
  ["challenge", "challenged"],
  ["challenged", "challenged"],
]);

/**
 * Returns the class of an event's `action`. The search route returns a verb (`block`), the list route a status word
 * (`Blocked`); events store the word that they came with. Null, empty and unknown words (`allow`, `bypass`) are
 * `other`. Only ASCII letters are folded, as in the roll-up's SQL: a Kelvin sign equals k in neither.
 */
export function classifyAction(action: string | null): ActionClass {
  const word = (action ?? "").replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  return CLASS_OF_WORD.get(word) ?? "other";
}
