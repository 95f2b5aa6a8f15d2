/** `labels.status` as the search language says it. */
const ACTIONS = new Map([
  ["blocked", "block"],
  ["logged", "log"],
  ["challenged", "challenge"],
  ["allowed", "allow"],
  ["bypassed", "bypass"],
]);

/** A word that nobody knows stays as it came. */
export function readAction(status: string): string {
  return ACTIONS.get(status.toLowerCase()) ?? status;
}
