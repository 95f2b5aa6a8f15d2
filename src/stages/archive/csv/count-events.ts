const QUOTE = 0x22;
const LINE_FEED = 0x0a;

/**
 * Returns a function that counts the events of an export's lines, chunk by chunk. A line feed within quotes belongs to
 * a cell. In the lines of JSON there is none, and their quotes may be escaped.
 */
export function createEventCounter(form: "csv" | "json"): (chunk: Buffer) => number {
  let events = 0;
  let isQuoted = false;
  return (chunk) => {
    for (const byte of chunk) {
      if (byte === LINE_FEED && !isQuoted) events += 1;
      else if (byte === QUOTE && form === "csv") isQuoted = !isQuoted;
    }
    return events;
  };
}
