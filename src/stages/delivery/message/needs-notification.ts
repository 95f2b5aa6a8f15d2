import type { AlertMessage } from "#model/alert-message.ts";

/**
 * Returns whether a channel that updates its message in place must notify as well: the alert got worse, has new
 * attackers or an urgent verdict, opened again, or is a reminder that nobody acknowledged. Advice and the end of an alert change the message without notifying.
 */
export function needsNotification({ reason, state, isQuiet = false }: AlertMessage): boolean {
  if (isQuiet) return false;
  if (reason === "verdict") return true;
  return reason === "join" || reason === "worse" || (reason === "repeat" && state === "firing");
}
