/** One typing error is allowed per this number of letters. */
const LETTERS_PER_EDIT = 6;
/** Names of this length or longer may always have one typing error. */
const ENOUGH_LETTERS = 4;

/**
 * Returns the known name that a person probably meant: one that begins with the text, the nearest one, one that the
 * text begins with, or null.
 */
export function closestName(typed: string, known: readonly string[]): string | null {
  const forgiven = typed.length < ENOUGH_LETTERS ? 0 : Math.max(1, typed.length / LETTERS_PER_EDIT);
  const nearest = known
    .map((name) => ({ name, edits: countEdits(typed, name) }))
    .filter(({ edits }) => edits <= forgiven)
    .sort((a, b) => a.edits - b.edits)[0]?.name;
  const unfinished = known.find((name) => name.startsWith(typed));
  return unfinished ?? nearest ?? known.find((name) => typed.startsWith(`${name}_`)) ?? null;
}

/** Counts the letters to add, drop or exchange (Levenshtein), one row of the table at a time. */
function countEdits(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [row, letter] of Array.from(from).entries()) {
    const current = [row + 1];
    for (const [column, other] of Array.from(to).entries()) {
      const exchanged = (above[column] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(exchanged, (above[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    above = current;
  }
  return above[to.length] ?? 0;
}
