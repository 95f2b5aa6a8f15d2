import type { AlertMessage } from "../model/alert-message.ts";

/**
 * Whether someone has to hear of a transition although its message is only edited: it got worse, or opened again, or is a
 * reminder that nobody has taken up. Advice and the end change what is read, not what is heard.
 */
export function mustRing({ reason, state, isQuiet = false }: AlertMessage): boolean {
  if (isQuiet) return false;
  return reason === "worse" || (reason === "repeat" && state === "firing");
}
