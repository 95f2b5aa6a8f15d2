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

/** Words of actions by what became of the request. */
export interface ActionWords {
  readonly stopped: readonly string[];
  /** Stopped unless the visitor solves a task. */
  readonly challenged: readonly string[];
  readonly through: readonly string[];
}

/** Each word in the form of a command and of a status. */
const ACTION_WORDS: ActionWords = {
  stopped: [
    "block",
    "blocked",
    "deny",
    "denied",
    "drop",
    "dropped",
    "reject",
    "rejected",
    "refuse",
    "refused",
    "ratelimit",
    "ratelimited",
  ],
  challenged: ["challenge", "challenged", "jschallenge", "managedchallenge", "captcha"],
  through: ["log", "logged", "allow", "allowed", "bypass", "bypassed", "monitor", "monitored"],
};
/** A mitigation may be named by the status of its answer. */
const REFUSAL = /^4\d\d$/;

/**
 * Returns the function that says what became of a request by its event's action: `blocked` or `challenged` is stopped, `logged` is
 * through, and `other` is not known. A word that is in no list is not known, because a guess would call an attack stopped or a
 * visitor through. Case, spaces at the ends, hyphens, underscores and spaces between words count for nothing.
 */
export function createClassifier(words: ActionWords = ACTION_WORDS): (action: string | null) => ActionClass {
  const toWord = (action: string) =>
    action
      .trim()
      .replaceAll(/[-_ ]/g, "")
      .replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  const entriesOf = (list: readonly string[], name: ActionClass) =>
    list.map((word) => [toWord(word), name] as const);
  // A word in two lists is stopped.
  const known = new Map([
    ...entriesOf(words.through, "logged"),
    ...entriesOf(words.challenged, "challenged"),
    ...entriesOf(words.stopped, "blocked"),
  ]);
  return (action) => {
    const word = toWord((action ?? "").slice(0, 100));
    return known.get(word) ?? (REFUSAL.test(word) ? "blocked" : "other");
  };
}
