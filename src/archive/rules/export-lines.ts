/** The lines of an export: CSV, NDJSON and OCSF. */

import { escapeUnits, quoteFormula } from "#lib/text.ts";
import { DIMENSIONS } from "#model/kinds.ts";
import { UNKNOWN } from "#model/ocsf.ts";
import { toArchivedEvent } from "#model/waf-event.ts";
import { maskAddress } from "./mask.ts";
import type { ColumnRow, createColumns } from "./records/to-row.ts";

/** The columns of an exported event, with the platform's names. */
export const EXPORT_NAMES = ["timestamp", "logId", ...DIMENSIONS];
/** The first line of a CSV export of one zone. */
export const EXPORT_HEADER = `${EXPORT_NAMES.join(",")}\r\n`;
/** The first line of a CSV export of several zones. Its last column is the zone. */
export const ZONES_HEADER = `${EXPORT_NAMES.join(",")},zone\r\n`;

const LINE_FEED = 0x0a;

/** Yields the header before the lines of a CSV export. */
export async function* withHeader(
  lines: AsyncIterable<Buffer | string>,
  header = EXPORT_HEADER,
): AsyncGenerator<Buffer | string, void, undefined> {
  // The first part decides whether there is an answer at all.
  let isFirst = true;
  for await (const chunk of lines) {
    if (isFirst) yield Buffer.from(header);
    isFirst = false;
    yield chunk;
  }
  if (isFirst) yield Buffer.from(header);
}

/** Yields each chunk of lines as text. Each line of the chunks is a JSON array of texts: the columns of an event. */
export function mapExportLines(
  chunks: AsyncIterable<Buffer>,
  toText: (row: readonly string[]) => string,
): AsyncGenerator<string, void, undefined> {
  return mapLines(chunks, (line) => toText(JSON.parse(line) as string[]));
}

/** Yields each chunk of lines as text. `toText` gets a line without its end. */
export async function* mapLines(
  chunks: AsyncIterable<Buffer>,
  toText: (line: string) => string,
): AsyncGenerator<string, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    rest = bytes.subarray(end);
    const lines = bytes.toString("utf8", 0, end).split("\n").slice(0, -1);
    let text = "";
    for (const line of lines) text += toText(line);
    yield text;
  }
}

/** Returns an event as one line of NDJSON, with its zone if that is not null. */
export function toNdjsonLine(row: readonly string[], zone: number | null): string {
  const event = Object.fromEntries(EXPORT_NAMES.map((name, index) => [name, row[index] ?? ""]));
  return toJsonLine({ ...event, timestamp: Number(event["timestamp"]), ...(zone === null ? {} : { zone }) });
}

/** Returns an object as one line of NDJSON. */
export function toJsonLine(row: object): string {
  return `${escapeControlsInJson(JSON.stringify(row))}\n`;
}

/** Returns the chosen columns of an event as one line of CSV. */
export function toColumnLine(row: ColumnRow): string {
  return toCsvLine(Object.values(row).map(String));
}

/** Yields the lines of an export in the form `event` with chosen columns. */
export function mapColumnLines(
  chunks: AsyncIterable<Buffer>,
  toColumns: ReturnType<typeof createColumns>,
  { zoneId, form }: { readonly zoneId: number; readonly form: "csv" | "ndjson" },
): AsyncGenerator<string, void, undefined> {
  const toText = form === "csv" ? toColumnLine : toJsonLine;
  return mapExportLines(chunks, ([at, ...texts]) =>
    toText(toColumns({ zoneId, ...toArchivedEvent(Number(at), texts) })),
  );
}

/** Few cells match any of it, so one test finds the cells that are written unchanged. */
const SPECIAL = /[",\r\n]|^[=+\-@\t\uFF1D\uFF0B\uFF0D\uFF20]|\\u/;
const NEEDS_QUOTES = /[",\r\n]/;

/**
 * Returns one line by RFC 4180, with its line end. Cells that a spreadsheet would evaluate begin with an apostrophe,
 * which it shows as text. Control characters are written in the form of `escapeControls`.
 */
export function toCsvLine(cells: readonly string[]): string {
  let line = "";
  for (let index = 0; index < cells.length; index++) {
    const text = cells[index] as string;
    if (index > 0) line += ",";
    line += SPECIAL.test(text) || hasControls(text) ? toSafeCell(text) : text;
  }
  return `${line}\r\n`;
}

function toSafeCell(text: string): string {
  const safe = quoteFormula(escapeControls(text));
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Matches control characters other than tab, line feed and carriage return, and bidirectional controls. */
const CONTROL = /[^\P{Cc}\t\n\r]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

function hasControls(text: string): boolean {
  return text.search(CONTROL) !== -1;
}

/** Matches a backslash that a reader would take for the beginning of an escape sequence. */
const LOOKALIKE = /\\(?=u[0-9a-fA-F]{4})/g;

/**
 * Writes characters that control a terminal or change the direction of text as `\uXXXX`. A backslash that begins such
 * a sequence in the text itself becomes `\u005c`, so that a reader who replaces every `\uXXXX` gets the original
 * text.
 */
function escapeControls(text: string): string {
  return text.replaceAll(LOOKALIKE, "\\u005c").replaceAll(CONTROL, escapeUnits);
}

/**
 * Returns the text of a cell that `toCsvLine` has written. Which cells began with an apostrophe before a formula themselves is
 * not known any more.
 */
export function readCsvCell(cell: string): string {
  const text = cell.startsWith("'") && quoteFormula(cell.slice(1)) === cell ? cell.slice(1) : cell;
  if (!text.includes("\\u")) return text;
  return text.replaceAll(/\\u([0-9a-f]{4})/g, (escaped, hex: string) => {
    const unit = String.fromCharCode(Number.parseInt(hex, 16));
    return unit === "\\" || hasControls(unit) ? unit : escaped;
  });
}

/** Escapes the same characters in JSON, whose own escape sequences stay. */
function escapeControlsInJson(json: string): string {
  return json.replaceAll(CONTROL, escapeUnits);
}

const QUOTE = 0x22;

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

export const PARQUET_TYPE = "application/vnd.apache.parquet";

/** Forms of an export and their media types. The first form is the default. */
const TYPES = {
  csv: ["text/csv"],
  ndjson: ["application/x-ndjson", "application/ndjson"],
  parquet: [PARQUET_TYPE],
} as const;

type Form = keyof typeof TYPES;

/**
 * Returns the form of an export that an `Accept` header asks for. NDJSON and Parquet, which are extensions, must be
 * named with a quality above 0 and not below that of the other forms.
 */
export function preferredForm(accept = ""): Form {
  const qualities = new Map(accept.split(",").map(readRange));
  const qualityOf = (form: Form) => Math.max(...TYPES[form].map((type) => qualities.get(type) ?? 0));
  let best: Form = "csv";
  for (const form of ["ndjson", "parquet"] as const)
    if (qualityOf(form) > 0 && qualityOf(form) >= qualityOf(best)) best = form;
  return best;
}

function readRange(text: string): [type: string, quality: number] {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const quality = parameters.find((one) => one.startsWith("q="))?.slice(2);
  return [type, quality === undefined ? 1 : Number(quality) || 0];
}

interface Line {
  readonly http_request: { readonly uid?: string };
  readonly src_endpoint: { readonly ip?: string; readonly name?: string };
}

/**
 * Returns a line of `toOcsfLine` that no terminal obeys, with its line feed. A masked key sees a shortened address and no id of
 * the request, as from `toOcsf`. DuckDB would need the memory of many lines to look at their characters.
 */
export function finishOcsfLine(line: string, isMasked = false): string {
  return `${escapeControlsInJson(isMasked ? mask(line) : line)}\n`;
}

function mask(line: string): string {
  const event = JSON.parse(line) as Line;
  const { ip, name = UNKNOWN, ...others } = event.src_endpoint;
  const masked = ip === undefined && name === UNKNOWN ? UNKNOWN : maskAddress(ip ?? name);
  const { uid: _uid, ...request } = event.http_request;
  return JSON.stringify({ ...event, src_endpoint: { name: masked, ...others }, http_request: request });
}
