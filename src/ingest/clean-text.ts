/** Longest URL, User-Agent or message kept in a column; the whole is in the raw record. */
export const MAX_TEXT_CHARS = 8_192;
/** Longest value of a dimension that is indexed or grouped by. */
export const MAX_DIMENSION_CHARS = 200;

const CUT = "…";

/**
 * Attack text made storable and otherwise left as it is: NUL becomes U+FFFD, as a lone surrogate does on its way into
 * UTF-8, and what is longer than the cap ends in an ellipsis.
 */
export function cleanText(text: string, maxChars: number): string {
  const whole = text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
  if (whole.length <= maxChars) return whole;
  const cut = whole.slice(0, maxChars - CUT.length);
  return `${isHighSurrogate(cut.charCodeAt(cut.length - 1)) ? cut.slice(0, -1) : cut}${CUT}`;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
