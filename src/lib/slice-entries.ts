const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** The items of an array, as views into its bytes, and the positions of its brackets. */
export interface SlicedArray {
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
    const end = endOfString(body, at);
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
    if (byte === QUOTE) at = endOfString(body, at);
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth--;
    itemEnd = at;
  }
  return { items, start, end: body.length };
}

/** Returns the position of the closing quote of the string that begins at `start`. */
function endOfString(body: Buffer, start: number): number {
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
