import { isSureAttack, type StoredVerdict } from "#model/verdict.ts";

/**
 * Returns whether a person would do something else after the later look: the verdict is another one, a misfire turned out to
 * last, or an attack is now all but certain. Odds that only moved change nothing.
 */
export function changesAction(before: StoredVerdict | null, now: StoredVerdict): boolean {
  if (before === null || before.said !== now.said) return true;
  if (now.said === "misfire") return now.isLasting && !before.isLasting;
  return isSureAttack(now) && !isSureAttack(before);
}
