/** What happened to the request, in the four ways that buckets count. */
export type ActionClass = "blocked" | "logged" | "challenged" | "other";

const CLASS_OF_WORD: ReadonlyMap<string, ActionClass> = new Map([
  ["block", "blocked"],
  ["blocked", "blocked"],
  ["log", "logged"],
  ["logged", "logged"],
  ["challenge", "challenged"],
  ["challenged", "challenged"],
]);

/**
 * The class of an event's `action`. The search route says a verb (`block`), the list route a status word (`Blocked`);
 * events keep what they were given. Null, empty and unknown words (`allow`, `bypass`) are `other`. Only ASCII letters
 * are folded, as in the roll-up's SQL: a Kelvin sign is not a k in either.
 */
export function classifyAction(action: string | null): ActionClass {
  const word = (action ?? "").replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  return CLASS_OF_WORD.get(word) ?? "other";
}
