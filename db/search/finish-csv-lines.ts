const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const COMMA = 0x2c;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** What a formula begins with; of the full-width forms of = + - @ the three bytes. */
const FORMULA_STARTS = new Set([0x09, LINE_FEED, CARRIAGE_RETURN, 0x2b, 0x2d, 0x3d, 0x40]);
const WIDE_STARTS = new Set([0xef_bc_8b, 0xef_bc_8d, 0xef_bc_9d, 0xef_bc_a0]);
const WIDE_LEAD = 0xef;

/**
 * Makes of what COPY writes, lines of a time, a log id and guarded cells, lines as RFC 4180 ends them, CRLF, with a guarded
 * log id. COPY leaves the log id as it is, because it says where the next part begins.
 */
export function finishCsvLines(copied: Buffer): Buffer {
  const lines = Buffer.allocUnsafe(copied.length + 2 * countLineFeeds(copied));
  let [start, to] = [0, 0];
  let quote = indexOf(copied, QUOTE, 0);
  let isQuoted = false;
  for (let at = indexOf(copied, LINE_FEED, 0); at < copied.length; at = indexOf(copied, LINE_FEED, at + 1)) {
    while (quote < at) {
      isQuoted = !isQuoted;
      quote = indexOf(copied, QUOTE, quote + 1);
    }
    // A line feed inside of quotes belongs to a text and stays.
    if (isQuoted) continue;
    const guarded = findGuard(copied, start);
    let from = start;
    if (guarded !== null) {
      to += copied.copy(lines, to, start, guarded);
      lines[to++] = APOSTROPHE;
      from = guarded;
    }
    to += copied.copy(lines, to, from, at);
    lines[to++] = CARRIAGE_RETURN;
    lines[to++] = LINE_FEED;
    start = at + 1;
  }
  return lines.subarray(0, to);
}

function indexOf(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at === -1 ? bytes.length : at;
}

function countLineFeeds(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) count++;
  return count;
}

/** Where a line's log id begins, if a spreadsheet would compute it. */
function findGuard(bytes: Buffer, start: number): number | null {
  let at = bytes.indexOf(COMMA, start) + 1;
  if (bytes[at] === QUOTE) at++;
  const first = bytes[at] as number;
  if (first === WIDE_LEAD) return WIDE_STARTS.has(bytes.readUIntBE(at, 3)) ? at : null;
  return FORMULA_STARTS.has(first) ? at : null;
}

/** What the last line of what COPY writes begins with: an event's time, epoch ms, and its log id. */
export function readLastLine(copied: Buffer): { at: number; logId: string } {
  let start = copied.length - 1;
  let isQuoted = false;
  // The end is outside of quotes: so is what has an even number of them behind it.
  do {
    const end = start;
    start = copied.lastIndexOf(LINE_FEED, end - 1) + 1;
    for (let at = copied.indexOf(QUOTE, start); at !== -1 && at < end; at = copied.indexOf(QUOTE, at + 1)) {
      isQuoted = !isQuoted;
    }
    if (isQuoted) start--;
  } while (isQuoted);
  return readStart(copied, start);
}

function readStart(bytes: Buffer, start: number): { at: number; logId: string } {
  const comma = bytes.indexOf(COMMA, start);
  const at = Number(bytes.toString("latin1", start, comma));
  const from = comma + 1;
  if (bytes[from] !== QUOTE) return { at, logId: bytes.toString("utf8", from, bytes.indexOf(COMMA, from)) };
  let end = bytes.indexOf(QUOTE, from + 1);
  // Two quotes stand for one of the text.
  while (bytes[end + 1] === QUOTE) end = bytes.indexOf(QUOTE, end + 2);
  return { at, logId: bytes.toString("utf8", from + 1, end).replaceAll('""', '"') };
}
