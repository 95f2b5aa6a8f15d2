import { escapeUnits } from "#lib/text.ts";

/** Matches control characters other than tab, line feed and carriage return, and bidirectional controls. */
const CONTROL = /[^\P{Cc}\t\n\r]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

export function hasControls(text: string): boolean {
  return text.search(CONTROL) !== -1;
}

/** Matches a backslash that a reader would take for the beginning of an escape sequence. */
const LOOKALIKE = /\\(?=u[0-9a-fA-F]{4})/g;

/**
 * Writes characters that control a terminal or change the direction of text as `\uXXXX`. A backslash that begins such
 * a sequence in the text itself becomes `\u005c`, so that a reader who replaces every `\uXXXX` gets the original
 * text.
 */
export function escapeControls(text: string): string {
  return text.replaceAll(LOOKALIKE, "\\u005c").replaceAll(CONTROL, escapeUnits);
}

/** Escapes the same characters in JSON, whose own escape sequences stay. */
export function escapeControlsInJson(json: string): string {
  return json.replaceAll(CONTROL, escapeUnits);
}
