/** A number outside a string that may not fit a double; false alarms inside strings only cost time. */
const LONG_INTEGER = /[[,:]\s*-?\d{16,}/;

function keepDigits(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== "number" || Number.isSafeInteger(value) || source === undefined) return value;
  return /^-?\d+$/.test(source) ? source : value;
}

/**
 * JSON text as a value, `undefined` when it is not JSON. An integer beyond 2^53 becomes the string of its digits:
 * rounding an identifier would quietly name another one. A byte order mark is skipped.
 */
export function parseJson(text: string): unknown {
  const json = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  try {
    return LONG_INTEGER.test(json) ? JSON.parse(json, keepDigits) : JSON.parse(json);
  } catch {
    return undefined;
  }
}
