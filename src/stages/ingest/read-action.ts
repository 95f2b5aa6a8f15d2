/** The search language's verbs for `labels.status`. */
const ACTIONS = new Map([
  ["blocked", "block"],
  ["logged", "log"],
  ["challenged", "challenge"],
  ["allowed", "allow"],
  ["bypassed", "bypass"],
]);

/** Returns the search language's verb. An unknown word stays as it came. */
export function readAction(status: string): string {
  return ACTIONS.get(status.toLowerCase()) ?? status;
}
