const MOST_NAMED = 20;

/** Returns the first known things in one text for a mistake: what could have been meant. */
export function nameKnown(known: readonly (string | number)[]): string {
  if (known.length === 0) return "there is none";
  const more = known.length > MOST_NAMED ? ` and ${known.length - MOST_NAMED} more` : "";
  return `${known.slice(0, MOST_NAMED).join(", ")}${more}`;
}
