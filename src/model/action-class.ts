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
 * Returns the class of an event's `action` as buckets count it, by the platform's own words. The search route returns a verb
 * (`block`), the list route a status word (`Blocked`); events store the word that they came with. Null, empty and other words
 * (`allow`, `deny`) are `other`. Only ASCII letters are folded, as in the roll-up's SQL: a Kelvin sign equals k in neither.
 */
export function classifyAction(action: string | null): ActionClass {
  const word = (action ?? "").replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  return CLASS_OF_WORD.get(word) ?? "other";
}

/** Words of actions by what became of the request. */
export interface ActionWords {
  readonly stopped: readonly string[];
  readonly through: readonly string[];
}

/** The built-in words, each in the form of a command and of a status. A challenge stops all who do not solve its task. */
const BUILT_IN: Readonly<Record<Exclude<ActionClass, "other">, string>> = {
  blocked: "block blocked deny denied drop dropped reject rejected refuse refused ratelimit ratelimited",
  challenged: "challenge challenged jschallenge managedchallenge captcha",
  logged: "log logged allow allowed bypass bypassed monitor monitored",
};
/** A mitigation may be named by the status of its answer. Postgres, DuckDB and JavaScript read the pattern alike. */
const REFUSAL = "^4[0-9][0-9]$";

/** Returns a word of an action as it is compared: without capitals of ASCII, hyphens, underscores and spaces. */
export function foldAction(action: string): string {
  return action.replaceAll(/[-_ ]/g, "").replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Returns SQL of Postgres and DuckDB for the word of a column's action, as `foldAction` returns it. */
export function toActionWordSql(column: string): string {
  const letters = "abcdefghijklmnopqrstuvwxyz";
  return `translate(${column}, '${letters.toUpperCase()}-_ ', '${letters}')`;
}

/** Reads from the action of an event whether its request was stopped or got through. */
export type ActionStates = ReturnType<typeof createActionStates>;

/**
 * Creates the reader of actions: `blocked` and `challenged` are stopped, `logged` is through, and `other` is not known. The given
 * words replace the state of built-in ones, except that a challenge in `stopped` stays `challenged`. Any other word is not known,
 * because a guess would call an attack stopped or a visitor through.
 */
export function createActionStates(own: ActionWords = { stopped: [], through: [] }) {
  const classes = Object.entries(BUILT_IN) as [ActionClass, string][];
  const known = new Map(classes.flatMap(([name, words]) => words.split(" ").map((word) => [word, name])));
  for (const word of own.stopped.map(foldAction))
    if (known.get(word) !== "challenged") known.set(word, "blocked");
  for (const word of own.through.map(foldAction)) known.set(word, "logged");
  const refusal = new RegExp(REFUSAL);

  const classify = (action: string | null): ActionClass => {
    const word = foldAction(action ?? "");
    return known.get(word) ?? (refusal.test(word) ? "blocked" : "other");
  };
  /** Returns SQL of Postgres and DuckDB for the class of a column's action, as `classify` returns it. */
  const toSql = (column: string): string => {
    const word = toActionWordSql(column);
    const cases = Array.from(known, ([one, name]) => `when '${one.replaceAll("'", "''")}' then '${name}'`);
    return `case ${word} ${cases.join(" ")} else case when ${word} ~ '${REFUSAL}' then 'blocked' else 'other' end end`;
  };
  return { own, classify, toSql };
}

/** The reader of actions without words of the configuration. */
export const BUILT_IN_ACTIONS = createActionStates();
