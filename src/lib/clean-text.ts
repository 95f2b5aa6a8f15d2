/** Longest URL, User-Agent or message kept in a column; the whole is in the raw record. */
export const MAX_TEXT_CHARS = 8_192;
/** Longest value of a dimension that is indexed or grouped by. */
export const MAX_DIMENSION_CHARS = 200;

const CUT = "…";

/**
 * Attack text made storable and otherwise left as it is: NUL and lone surrogates become U+FFFD, and what is longer than
 * the cap ends in an ellipsis. Two texts that differ here differ in the database as well: a key made of one is a key there.
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
