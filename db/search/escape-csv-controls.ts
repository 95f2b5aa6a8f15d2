/**
 * UTF-8 of the characters that `escapeControls` of the CSV lines writes as `\uXXXX`, as bytes: controls but for tab, line
 * feed and carriage return, bidirectional controls, and the backslash of a text that reads like such a sequence.
 */
const CONTROLS =
  /[^\P{Cc}\t\n\r\x80-\x9f]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]|\\(?=u[0-9a-fA-F]{4})/gu;

/** Escapes control characters in lines of CSV, inside and outside of quotes; the buffer itself where there are none. */
export function escapeCsvControls(lines: Buffer): Buffer {
  const bytes = lines.toString("latin1");
  // Most parts have none: this look costs a fraction of a copy.
  if (bytes.search(CONTROLS) === -1) return lines;
  const escaped = bytes.replaceAll(CONTROLS, (sequence) => {
    const [character = ""] = Buffer.from(sequence, "latin1").toString("utf8");
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return Buffer.from(escaped, "latin1");
}
