/**
 * Matches everything that moves a cursor, colours, hides or reorders text: control characters, format characters
 * (bidi, zero width, tags, byte order mark), line and paragraph separators, and halves of a surrogate pair.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Makes text of unknown origin safe for a terminal or a log line: one line, every control character spelled out. */
export function escapeText(text: string): string {
  return text.replace(UNSAFE, escapeCharacter);
}

/** Makes text of several lines safe for a terminal: everything but line breaks and tabs is spelled out. */
export function escapeLines(text: string): string {
  return text.replace(/(?:[^\r\n\t]|\r(?!\n))+/g, escapeText);
}

/** Returns the same text with at most `maxChars` characters, with a mark where it was cut. */
export function shortenText(text: string, maxChars: number): string {
  const escaped = escapeText(text.length > maxChars * 2 ? text.slice(0, maxChars * 2) : text.trim());
  return escaped.length > maxChars ? `${escaped.slice(0, maxChars - 1).replace(/\p{Cs}/gu, "")}…` : escaped;
}

/** Characters that XML 1.0 cannot express, not even as a reference. */
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes a text for XML or HTML: between tags, or in a quoted attribute. */
export function escapeMarkup(text: string): string {
  return text.replace(NOT_XML, "\ufffd").replace(/[&<>"']/g, (mark) => ENTITIES[mark] ?? mark);
}
