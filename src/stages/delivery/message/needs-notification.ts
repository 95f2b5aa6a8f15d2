import type { AlertMessage } from "#model/alert-message.ts";
import { NOTICED } from "#model/words.ts";

/**
 * Returns whether a channel that updates its message in place must notify as well: the alert got worse, has new
 * attackers or an urgent verdict, opened again, or is a reminder that nobody acknowledged. Advice and the end of an alert change the message without notifying.
 */
export function needsNotification({ reason, state, isQuiet = false }: AlertMessage): boolean {
  if (isQuiet) return false;
  if (reason === "repeat") return state === "firing";
  return reason === "turned" || reason === "verdict" || (reason !== "first" && NOTICED.includes(reason));
}
