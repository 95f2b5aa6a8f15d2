/** JSON: parsed without loss, and cut into the bytes of its entries. */

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

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** The items of an array, as views into its bytes, and the positions of its brackets. */
interface SlicedArray {
  readonly items: readonly Buffer[];
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the array `member` of a JSON object with its items byte for byte as they were received. The last such member
 * counts, as for JSON.parse. `body` must be valid JSON. Returns null when the member
 * is not found as an array, or when its name was written with escapes.
 */
export function sliceEntries(body: Buffer, member: string): SlicedArray | null {
  const name = Buffer.from(`"${member}"`);
  let found: SlicedArray | null = null;
  let depth = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth--;
    if (byte !== QUOTE) continue;
    const end = endOfQuoted(body, at);
    const value = depth === 1 && body.subarray(at, end + 1).equals(name) ? startOfValue(body, end + 1) : null;
    if (value !== null && body[value] === OPEN_ARRAY) {
      found = sliceArray(body, value);
      at = found.end;
    } else {
      at = end;
    }
  }
  return found;
}

/** Returns the array that begins at `start`. */
export function sliceArray(body: Buffer, start: number): SlicedArray {
  const items: Buffer[] = [];
  let depth = 0;
  let itemStart = -1;
  let itemEnd = -1;
  const close = () => {
    if (itemStart !== -1) items.push(body.subarray(itemStart, itemEnd + 1));
    itemStart = -1;
  };
  for (let at = start + 1; at < body.length; at++) {
    const byte = body[at] as number;
    if (byte <= 0x20) continue;
    if (depth === 0 && byte === COMMA) {
      close();
      continue;
    }
    if (depth === 0 && byte === CLOSE_ARRAY) {
      close();
      return { items, start, end: at };
    }
    if (itemStart === -1) itemStart = at;
    if (byte === QUOTE) at = endOfQuoted(body, at);
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth--;
    itemEnd = at;
  }
  return { items, start, end: body.length };
}

/** Returns the position of the closing quote of the string that begins at `start`. */
function endOfQuoted(body: Buffer, start: number): number {
  let at = start + 1;
  for (; at < body.length; at++) {
    const byte = body[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  return at;
}

/** Returns the start of the value after a key, or null when the string was no key. */
function startOfValue(body: Buffer, after: number): number | null {
  let at = after;
  while (at < body.length && (body[at] as number) <= 0x20) at++;
  if (body[at] !== COLON) return null;
  at++;
  while (at < body.length && (body[at] as number) <= 0x20) at++;
  return at;
}

/** Returns whether a JSON value is an object, not an array and not null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
