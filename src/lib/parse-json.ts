/** Matches a number that may not fit a double. A false match within a string only costs time. */
const LONG_INTEGER = /[[,:]\s*-?\d{16,}/;
/** Finds the same in a third of the time, and others. */
const LONG_DIGITS = /\d{16}/;
const STRING_OR_NUMBER = /"|-?\d[\d.eE+-]*/g;

/**
 * Returns the position of the closing quote of the string that begins at `start`, or the end of the text without one.
 */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (json[end - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return json.length;
}

/** Returns whether a number is an integer that a double would round. */
function isRounded(number: string): boolean {
  return /^-?[1-9]\d{15,}$/.test(number) && !Number.isSafeInteger(Number(number));
}

/**
 * Returns the same JSON with a string in place of every integer beyond 2^53. A reviver of JSON.parse is not used,
 * because it is recursive and fails at a few thousand levels.
 */
function quoteLongIntegers(json: string): string {
  const parts: string[] = [];
  let copied = 0;
  STRING_OR_NUMBER.lastIndex = 0;
  for (let match = STRING_OR_NUMBER.exec(json); match !== null; match = STRING_OR_NUMBER.exec(json)) {
    const [token] = match;
    if (token === '"') STRING_OR_NUMBER.lastIndex = endOfString(json, match.index) + 1;
    else if (isRounded(token)) {
      parts.push(json.slice(copied, match.index), `"${token}"`);
      copied = STRING_OR_NUMBER.lastIndex;
    }
  }
  return parts.length === 0 ? json : parts.join("") + json.slice(copied);
}

/**
 * Returns the value of JSON text, or `undefined` when it is not JSON. An integer beyond 2^53 becomes the string of
 * its digits, because rounding an identifier would name another one. A byte order mark is skipped.
 */
export function parseJson(text: string): unknown {
  const json = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  try {
    return JSON.parse(LONG_DIGITS.test(json) && LONG_INTEGER.test(json) ? quoteLongIntegers(json) : json);
  } catch {
    return undefined;
  }
}
