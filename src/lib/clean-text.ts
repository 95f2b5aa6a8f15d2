/** Longest URL, User-Agent or message in a column. The raw record holds the whole text. */
export const MAX_TEXT_CHARS = 8_192;
/** Longest value of a dimension that is indexed or grouped by. */
export const MAX_DIMENSION_CHARS = 200;

const CUT = "…";

/**
 * Returns attack text that can be stored and is otherwise unchanged: NUL and lone surrogates become U+FFFD, and text
 * longer than `maxChars` ends in an ellipsis. Two results that differ also differ in the database, so a key made of
 * one is a key there.
 */
export function cleanText(text: string, maxChars: number): string {
  const withoutNul = text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
  const whole = withoutNul.toWellFormed();
  if (whole.length <= maxChars) return whole;
  const cut = whole.slice(0, maxChars - CUT.length);
  return `${isHighSurrogate(cut.charCodeAt(cut.length - 1)) ? cut.slice(0, -1) : cut}${CUT}`;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
