/** Reads a file of events, rows of an export or entries of the platform's list, and replays them. */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import type { ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import type { RecordedEvent } from "#alerts/rules/backtest/replay-verdicts.ts";
import { createZoneReplay, type ReplayPolicy, type ZoneReplay } from "#alerts/rules/backtest/replay-zone.ts";
import { judgeVerdict } from "#detection/rules/verdict/judge-verdict.ts";
import type { StoreIo } from "#faces/cli/store/store-command.ts";
import { toListEvent } from "#ingest/rules/read-page.ts";
import { toError, UsageError } from "#lib/errors.ts";
import { formatWhole } from "#lib/format.ts";
import { isObject, parseJson } from "#lib/json.ts";
import { createProgressLine, drawBar } from "#lib/progress-bar.ts";
import { cleanText, escapeText, MAX_TEXT_CHARS } from "#lib/text.ts";
import { type ActionStates, classifyAction } from "#model/action-class.ts";
import { readRequest } from "#model/request-facts.ts";
import { readEventTime } from "#platform/contract/values.ts";
import { CsvFileError, type CsvRecord, readCsv } from "#proof/backfill/read-csv.ts";

/** The longest record. Eight kilobytes of URL and of user agent fit in. */
const MAX_RECORD_BYTES = 65_536;
const MAX_MISTAKES = 10;
/** The year 2100. A larger number is a time in milliseconds. */
const MAX_SECONDS = 4_102_444_800;
const MAX_ZONE_CHARS = 200;

const COLUMNS = [
  "zone",
  "timestamp",
  "rule_id",
  "ip",
  "asn",
  "country",
  "ja4",
  "ua",
  "url",
  "action",
] as const;
type Column = (typeof COLUMNS)[number];

const RULES = {
  zone: `a name of at most ${MAX_ZONE_CHARS} characters that is not empty`,
  timestamp: "seconds since the epoch",
};

/** Takes one event. If it is out of order, returns the second that it must not be before. */
export type TakeEvent = (zone: string, second: number, event: RecordedEvent) => number | undefined;

/**
 * Reads a CSV file of events in chunks. The header names the columns, in any order; other columns are ignored. Returns
 * the mistakes, each with line, column, value and rule. Stops after ten mistakes.
 */
export async function readEvents(
  chunks: AsyncIterable<Buffer>,
  actions: ActionStates,
  take: TakeEvent,
): Promise<string[]> {
  const mistakes: string[] = [];
  let columns: Record<Column, number> | undefined;
  let line = 0;
  try {
    for await (const record of readCsv(chunks, MAX_RECORD_BYTES)) {
      line = record.line;
      if (columns === undefined) {
        const missing = missingColumns(record.cells);
        if (missing.length > 0) return [headerMistake(record.text, missing)];
        columns = placesOf(record.cells);
        continue;
      }
      const mistake = takeRecord(record, columns, { actions, take });
      if (mistake !== undefined) mistakes.push(mistake);
      if (mistakes.length >= MAX_MISTAKES) return mistakes;
    }
  } catch (thrown) {
    if (!(thrown instanceof CsvFileError)) throw thrown;
    return [...mistakes, `line ${line + 1}: ${thrown.message}`];
  }
  return columns === undefined ? [headerMistake("", COLUMNS)] : mistakes;
}

function takeRecord(
  { cells, line }: CsvRecord,
  columns: Record<Column, number>,
  { actions, take }: { actions: ActionStates; take: TakeEvent },
): string | undefined {
  const cell = (column: Column) => cells[columns[column]] ?? "";
  const wrong = (column: Column, rule: string) =>
    `line ${line}, column ${column}: "${escapeText(cell(column).slice(0, 80))}" must be ${rule}`;
  const zone = cell("zone");
  if (zone === "" || zone.length > MAX_ZONE_CHARS) return wrong("zone", RULES.zone);
  const second = toSecond(cell("timestamp"));
  if (Number.isNaN(second)) return wrong("timestamp", RULES.timestamp);
  const after = take(zone, second, {
    ruleId: cell("rule_id"),
    ip: cell("ip"),
    asn: cell("asn"),
    ja4: cell("ja4"),
    ua: cell("ua"),
    url: cell("url"),
    action: classifyAction(cell("action")),
    fate: actions.classify(cell("action")),
  });
  return after === undefined
    ? undefined
    : wrong("timestamp", `at least ${after}, the second of the zone's previous row`);
}

function missingColumns(cells: readonly string[]): Column[] {
  const names = new Set(cells.map((name) => name.trim()));
  return COLUMNS.filter((column) => !names.has(column));
}

function placesOf(cells: readonly string[]): Record<Column, number> {
  const names = cells.map((name) => name.trim());
  return Object.fromEntries(COLUMNS.map((column) => [column, names.indexOf(column)])) as Record<
    Column,
    number
  >;
}

function headerMistake(text: string, missing: readonly Column[]): string {
  return `line 1: "${escapeText(text.slice(0, 80))}" must be the header ${COLUMNS.join(",")}; it lacks ${missing.join(", ")}`;
}

/** Returns NaN for any other text. Fractions of a second are dropped. */
function toSecond(text: string): number {
  const value = /^\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Math.floor(Number(text)) : Number.NaN;
  return value <= MAX_SECONDS ? value : Number.NaN;
}

const MAX_LINE_BYTES = 1_048_576;

const FIELDS = ["ruleId", "ip", "ja4", "ua", "url", "asn", "action"] as const;
const ENTRY_RULES = {
  zone: `a number, or a name of 1 to ${MAX_ZONE_CHARS} characters`,
  logId: "a text that is not empty",
  timestamp: "milliseconds since the epoch",
  labels: "an object of texts",
  log: "a text with the record's JSON, or the record",
  fields: `an object of texts, such as ${FIELDS.join(", ")}`,
};

/**
 * Reads entries of the date-paged list, one JSON object per line with its `zone`, in chunks. Members of `fields`, as a search's row
 * has them, replace what the entry says. Returns the mistakes, each with line, field, value and rule. Stops after ten.
 */
export async function readEntries(
  chunks: AsyncIterable<Buffer>,
  actions: ActionStates,
  take: TakeEvent,
): Promise<string[]> {
  const mistakes: string[] = [];
  let line = 0;
  for await (const text of splitLines(chunks)) {
    line += 1;
    const mistake =
      text === null ? `a line has at most ${MAX_LINE_BYTES} bytes` : takeLine(text, actions, take);
    if (mistake !== undefined) mistakes.push(`line ${line}${mistake.startsWith(",") ? "" : ": "}${mistake}`);
    if (text === null || mistakes.length >= MAX_MISTAKES) break;
  }
  return mistakes;
}

function takeLine(text: Buffer, { classify }: ActionStates, take: TakeEvent): string | undefined {
  const entry = parseJson(text.toString());
  const shown = (value: unknown) =>
    `"${escapeText((typeof value === "string" ? value : (JSON.stringify(value) ?? "")).slice(0, 80))}"`;
  if (!isObject(entry))
    return text.toString().trim() === ""
      ? undefined
      : `${shown(text.toString("utf8", 0, 400))} must be a JSON object`;
  const wrong = (field: keyof typeof ENTRY_RULES, rule = ENTRY_RULES[field]) =>
    `, field ${field}: ${shown(entry[field])} must be ${rule}`;
  const { zone, timestamp, log = null, fields = {} } = entry;
  const name = Number.isSafeInteger(zone) ? String(zone) : zone;
  if (typeof name !== "string" || name === "" || name.length > MAX_ZONE_CHARS) return wrong("zone");
  if (!isObject(fields) || !FIELDS.every((field) => fields[field] == null || isText(fields[field])))
    return wrong("fields");
  if (log !== null && typeof log !== "string" && !isObject(log)) return wrong("log");
  const event = toListEvent(entry);
  if (event === null) return wrong(wrongField(entry));
  const of = (field: (typeof FIELDS)[number]) => {
    const own = fields[field];
    return cleanText(isText(own) && own !== "" ? String(own) : (event[field] ?? ""), MAX_TEXT_CHARS);
  };
  const url = of("url");
  const after = take(name, Math.floor(event.occurredAt / 1_000), {
    ruleId: of("ruleId"),
    ip: of("ip"),
    asn: of("asn"),
    ja4: of("ja4"),
    ua: of("ua"),
    url,
    action: classifyAction(of("action")),
    fate: classify(of("action")),
    at: event.occurredAt,
    logId: event.logId,
    ...(log === null ? {} : { request: readRequest(text, { url, ua: of("ua"), ruleId: of("ruleId") }, "") }),
  });
  return after === undefined
    ? undefined
    : wrong(
        "timestamp",
        `at least ${after * 1_000}, the second of the zone's previous line (${shown(timestamp)})`,
      );
}

/** Returns the field because of which the entry is none. */
function wrongField({ logId, timestamp }: Record<string, unknown>): "logId" | "timestamp" | "labels" {
  if (!Number.isSafeInteger(logId) && (typeof logId !== "string" || logId === "")) return "logId";
  return readEventTime(timestamp) === null ? "timestamp" : "labels";
}

function isText(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

/** Yields the lines without their ends, and null in place of one that is too long. */
async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer | null, void, undefined> {
  let rest: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      yield bytes + end - from > MAX_LINE_BYTES ? null : Buffer.concat([...rest, chunk.subarray(from, end)]);
      [rest, bytes, from] = [[], 0, end + 1];
    }
    rest.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > MAX_LINE_BYTES) yield null;
  }
  if (bytes > 0) yield Buffer.concat(rest);
}

export interface EventsReport {
  readonly zones: number;
  readonly rows: number;
  readonly zoneDays: number;
  /** Messages by zone, in the order of time. */
  readonly messages: readonly (ReplayedMessage & { readonly zone: string })[];
}

/**
 * Replays a file of events: CSV, or NDJSON if it begins with a brace. Rows of a zone come in the order of time; zones may alternate.
 * @throws {UsageError} when the file cannot be read or has a mistake.
 */
export async function replayEvents(
  path: string,
  { actions, ...policy }: ReplayPolicy & { readonly actions: ActionStates },
  stderr: StoreIo["stderr"],
): Promise<EventsReport> {
  const zones = new Map<string, { replay: ZoneReplay; firstSecond: number; lastSecond: number }>();
  let rows = 0;
  await readInput({ flag: "--events", path, stderr }, (chunks, onRow) =>
    readAny(chunks, actions, (zone, second, event) => {
      const one = zones.get(zone) ?? {
        replay: createZoneReplay({ ...policy, judge: (evidence) => judgeVerdict(evidence) }),
        firstSecond: second,
        lastSecond: second,
      };
      if (second < one.lastSecond) return one.lastSecond;
      zones.set(zone, one);
      one.lastSecond = second;
      one.replay.take(event, Math.floor(second / 60));
      rows += 1;
      onRow();
      return undefined;
    }),
  );
  const messages = [...zones].flatMap(([zone, { replay }]) =>
    replay.finish().map((message) => ({ zone, ...message })),
  );
  const seconds = [...zones.values()].reduce((sum, one) => sum + one.lastSecond - one.firstSecond, 0);
  return { zones: zones.size, rows, zoneDays: seconds / 86_400, messages };
}

/** Reads CSV or NDJSON, by the first character. */
async function readAny(
  chunks: AsyncIterable<Buffer>,
  actions: ActionStates,
  take: TakeEvent,
): Promise<string[]> {
  const pieces = chunks[Symbol.asyncIterator]();
  const first = await pieces.next();
  async function* all() {
    if (first.done === true) return;
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => pieces };
  }
  const isJson = first.done !== true && /^\ufeff?\s*\{/.test(first.value.toString("utf8", 0, 64));
  return isJson ? readEntries(all(), actions, take) : readEvents(all(), actions, take);
}

/**
 * Reads an input file in chunks and draws the progress. A file whose name ends in `.gz` is decompressed. `read` gets
 * the chunks and a function to call once per row, and returns the mistakes.
 * @throws {UsageError} when the file cannot be read or has a mistake.
 */
export async function readInput(
  { flag, path, stderr }: { flag: string; path: string; stderr: StoreIo["stderr"] },
  read: (chunks: AsyncIterable<Buffer>, onRow: () => void) => Promise<string[]>,
): Promise<void> {
  const line = createProgressLine(stderr);
  let rows = 0;
  let mistakes: string[];
  try {
    const { size } = await stat(path);
    const file = watchChunks(createReadStream(path, { highWaterMark: 1 << 18 }), (bytes) =>
      line.update(`${drawBar(size > 0 ? bytes / size : 0)}  ${formatWhole(rows)} rows`),
    );
    const chunks = path.endsWith(".gz") ? decompress(file) : file;
    mistakes = await read(chunks, () => {
      rows += 1;
    });
  } catch (thrown) {
    throw new UsageError([`${flag} "${path}" must be a file that can be read: ${toError(thrown).message}`]);
  } finally {
    line.clear();
  }
  if (mistakes.length > 0) throw new UsageError(mistakes);
}

/** Reports progress after every 16th chunk, so that a fast disk does not redraw the line too often. */
async function* watchChunks(chunks: AsyncIterable<Buffer>, update: (bytes: number) => void) {
  let bytes = 0;
  let pieces = 0;
  for await (const chunk of chunks) {
    yield chunk;
    bytes += chunk.length;
    pieces += 1;
    if (pieces % 16 === 0) update(bytes);
  }
}

function decompress(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const gunzip = createGunzip({ chunkSize: 1 << 18 });
  // A failure of the file destroys the decompressor, whose reader then throws it.
  pipeline(chunks, gunzip).catch(() => undefined);
  return gunzip;
}
