const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Returns the items of the array `member` of a JSON object, byte for byte as they were received; views into `body`,
 * not copies. The last such member counts, as for JSON.parse. `body` must be valid JSON. Returns null when the member
 * is not found as an array, or when its name was written with escapes.
 */
export function sliceEntries(body: Buffer, member: string): Buffer[] | null {
  const name = Buffer.from(`"${member}"`);
  let items: Buffer[] | null = null;
  let depth = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth--;
    if (byte !== QUOTE) continue;
    const end = endOfString(body, at);
    const value = depth === 1 && body.subarray(at, end + 1).equals(name) ? startOfValue(body, end + 1) : null;
    if (value !== null && body[value] === OPEN_ARRAY) {
      const array = sliceArray(body, value);
      items = array.items;
      at = array.end;
    } else {
      at = end;
    }
  }
  return items;
}

/** Returns the items of the array that begins at `start`, and the array's end. */
export function sliceArray(body: Buffer, start: number): { items: Buffer[]; end: number } {
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
      return { items, end: at };
    }
    if (itemStart === -1) itemStart = at;
    if (byte === QUOTE) at = endOfString(body, at);
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth--;
    itemEnd = at;
  }
  return { items, end: body.length };
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
