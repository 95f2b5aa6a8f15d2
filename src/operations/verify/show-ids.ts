import { shortenText } from "#lib/text.ts";

const SHOWN = 3;
const MAX_ID_CHARS = 60;

/** Returns a few of `count` ids, such as `missing a, b, c and 12 more`, or null if there are none. */
export function showIds(what: string, ids: readonly string[], count = ids.length): string | null {
  if (ids.length === 0) return null;
  const shown = ids.slice(0, SHOWN).map((id) => shortenText(id, MAX_ID_CHARS));
  const more = count > shown.length ? ` and ${count - shown.length} more` : "";
  return `${what} ${shown.join(", ")}${more}`;
}
