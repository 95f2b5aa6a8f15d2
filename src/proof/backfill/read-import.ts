/** Reads files of events: our own exports, and what the platform has answered, as CSV or NDJSON. */

import { createReadStream } from "node:fs";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { readCsvCell } from "#archive/rules/export-lines.ts";
import { type EventRecord, readBy, readPage } from "#ingest/rules/read-page.ts";
import { formatBytes } from "#lib/disk.ts";
import { toError } from "#lib/errors.ts";
import { isObject, parseJson } from "#lib/json.ts";
import { FIELDS, type FieldName, toFieldName } from "#model/fields.ts";
import type { EventRoute } from "#model/kinds.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { DIMENSIONS, EventRow } from "#platform/contract/event-logs.ts";
import { CsvFileError, type ExportColumns, readCsv, toEpochMs, toExportEvent } from "./read-csv.ts";

/** A line of NDJSON may be a whole page of the platform with its records. */
const MAX_LINE_BYTES = 16 * 1_024 * 1_024;
/** Bytes of a line that are kept apart. */
const MAX_KEPT_BYTES = 65_536;
/** Log lines are compressed to a tenth. A file beyond this was made to fill a machine. */
const MAX_RATIO = 300;
const FREE_BYTES = 64 * 1_024 * 1_024;

/** Facts of the import that a row lacks. */
interface RowSource {
  /** Epoch ms. */
  readonly receivedAt: number;
  readonly hashKey: string;
}

interface ReadRow {
  readonly event: WafEvent;
  /** Null if the row has no record of the event. */
  readonly record: EventRecord | null;
}

/** A row of a file. */
export interface ImportedRow {
  readonly line: number;
  readonly raw: Buffer;
  /** The zone that the row names; null if it names none. */
  readonly zone: string | null;
  /** Returns the event, or why the row is none. */
  readonly read: (source: RowSource) => ReadRow | { readonly problem: string };
}

/** Returns the bytes of a file, unpacked if its name ends in .gz or .zst. `onBytes` gets the number of each read. */
export async function* readBytes(
  file: string,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer, void, undefined> {
  let [packed, unpacked] = [0, 0];
  const stream = createReadStream(file);
  const unpack = file.endsWith(".gz")
    ? createGunzip()
    : file.endsWith(".zst")
      ? createZstdDecompress()
      : null;
  if (unpack !== null) stream.on("error", (error) => unpack.destroy(error)).pipe(unpack);
  try {
    for await (const chunk of (unpack ?? stream) as AsyncIterable<Buffer>) {
      unpacked += chunk.length;
      onBytes(stream.bytesRead - packed);
      packed = stream.bytesRead;
      if (unpack !== null && unpacked > FREE_BYTES + MAX_RATIO * packed)
        throw new CsvFileError(`unpacks to more than ${MAX_RATIO} times its ${formatBytes(packed)}`);
      yield chunk;
    }
  } catch (thrown) {
    const isUnpacking = unpack !== null && /^(Z_|ZSTD_)/.test((thrown as { code?: string }).code ?? "");
    throw isUnpacking ? new CsvFileError(`cannot be unpacked: ${toError(thrown).message}`) : thrown;
  } finally {
    stream.destroy();
    unpack?.destroy();
  }
}

/**
 * Yields the rows of a file, of which the name says the form.
 * @throws {CsvFileError} if a CSV has no header with logId and timestamp, or a record without an end
 */
export function readRows(file: string, bytes: AsyncIterable<Buffer>): AsyncIterable<ImportedRow> {
  return /\.csv(\.\w+)?$/.test(file) ? readCsvRows(bytes) : readJsonRows(bytes);
}

/** The names of columns besides the fields: those of exports and of the archive's files. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  timestamp: "timestamp",
  time: "timestamp",
  occurred_at: "timestamp",
  logid: "logId",
  log_id: "logId",
  zone: "zone",
  zone_id: "zone",
  zoneid: "zone",
  rule_id: "ruleId",
  message: "message",
  method: "method",
  request_id: "requestId",
};
const KEYS = new Map(
  Object.entries(FIELDS).flatMap(([name, key]) => [name, key].map((one) => [one.toLowerCase(), key])),
);

/** Returns the key of a column, in any case of letters; null for a column that an event does not have. */
function keyOf(name: string): string | null {
  const asked = name.trim().toLowerCase();
  return OTHER_NAMES[asked] ?? KEYS.get(asked) ?? null;
}

async function* readCsvRows(bytes: AsyncIterable<Buffer>): AsyncGenerator<ImportedRow, void, undefined> {
  let keys: (string | null)[] | undefined;
  for await (const { cells, text, line } of readCsv(bytes)) {
    if (keys === undefined) {
      keys = cells.map(keyOf);
      if (!keys.includes("logId") || !keys.includes("timestamp"))
        throw new CsvFileError(
          "is not an export: its first line must name the columns logId and timestamp or time",
        );
      continue;
    }
    const values = new Map<string, unknown>();
    for (const [index, key] of keys.entries())
      if (key !== null && !values.has(key)) values.set(key, readCsvCell(cells[index] ?? ""));
    yield toFlatRow(values, line, Buffer.from(text));
  }
}

async function* readJsonRows(bytes: AsyncIterable<Buffer>): AsyncGenerator<ImportedRow, void, undefined> {
  for await (const { line, raw, isCut } of readLines(bytes)) {
    if (isCut) yield toBadRow(line, raw, `longer than ${formatBytes(MAX_LINE_BYTES)}`);
    else if (raw.length > 0) yield* toJsonRows(parseJson(raw.toString()), line, raw);
  }
}

/** Yields the lines without their ends. A line that is too long is cut, and the rest of it is skipped. */
async function* readLines(bytes: AsyncIterable<Buffer>) {
  let [line, held, size] = [1, [] as Buffer[], 0];
  const take = () => {
    const raw = Buffer.concat(held);
    const isCut = size > MAX_LINE_BYTES;
    [held, size] = [[], 0];
    const end = raw.at(-1) === 0x0d ? -1 : undefined;
    return { line: line++, raw: isCut ? raw.subarray(0, MAX_KEPT_BYTES) : raw.subarray(0, end), isCut };
  };
  for await (const chunk of bytes) {
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0 || from < chunk.length; end = chunk.indexOf(0x0a, from)) {
      const part = chunk.subarray(from, end < 0 ? undefined : end);
      if (size <= MAX_LINE_BYTES) held.push(part);
      size += part.length;
      if (end < 0) break;
      from = end + 1;
      yield take();
    }
  }
  if (size > 0) yield take();
}

/** Yields the row of a line, or the rows of a page of the platform. */
function* toJsonRows(value: unknown, line: number, raw: Buffer): Generator<ImportedRow> {
  const rows = isObject(value) ? [value["rows"], value["logs"]].find(Array.isArray) : undefined;
  for (const entry of (rows ?? [value]) as unknown[]) {
    const text = rows === undefined ? raw : Buffer.from(JSON.stringify(entry) ?? "");
    if (isObject(entry)) yield toJsonRow(entry, line, text);
    else yield toBadRow(line, text, "is no JSON object");
  }
}

function toBadRow(line: number, raw: Buffer, problem: string): ImportedRow {
  return { line, raw, zone: null, read: () => ({ problem: `unreadable: ${problem}` }) };
}

function toJsonRow(value: Record<string, unknown>, line: number, raw: Buffer): ImportedRow {
  const { fields, labels, log } = value;
  if (isObject(fields)) {
    const named = Object.entries(fields).map(([name, one]) => [
      FIELDS[toFieldName(name) as FieldName] ?? name,
      one,
    ]);
    const entry = { ...value, fields: Object.fromEntries(named) as Record<string, unknown> };
    const zone = toZoneText(value["zone"] ?? fields["zone"]);
    return { line, raw, zone, read: (source) => readOne("search", entry, raw, source, log != null) };
  }
  if (isObject(labels) || typeof log === "string")
    return {
      line,
      raw,
      zone: toZoneText(value["zone"]),
      read: (source) => readOne("list", value, raw, source, true),
    };
  const values = new Map<string, unknown>();
  for (const [name, one] of Object.entries(value)) {
    const key = keyOf(name);
    // Null is unknown, and the archive's files have the same columns as an event.
    if (key !== null && one !== null && !values.has(key)) values.set(key, one);
  }
  return toFlatRow(values, line, raw);
}

function toZoneText(value: unknown): string | null {
  return typeof value === "number" || (typeof value === "string" && value !== "") ? String(value) : null;
}

/** A row of an export: columns, and no record. A dimension without a column is unknown. */
function toFlatRow(values: ReadonlyMap<string, unknown>, line: number, raw: Buffer): ImportedRow {
  const text = (key: string) => (values.has(key) ? String(values.get(key)) : null);
  const timestamp = values.get("timestamp");
  const known = DIMENSIONS.filter((name) => values.has(name));
  const columns: ExportColumns = new Map(known.map((name, index) => [name, index]));
  const entry = {
    logId: values.get("logId"),
    timestamp: typeof timestamp === "string" ? toEpochMs(timestamp) : timestamp,
    fields: Object.fromEntries(known.map((name) => [name, text(name)])) as unknown,
  };
  const reader = readBy(EventRow, (row) => ({ ...toExportEvent(columns, row), message: text("message") }));
  const read = (source: RowSource) => {
    const found = readOne("search", entry, raw, { ...source, reader }, false);
    if ("problem" in found) return found;
    const { event } = found;
    const method = text("method") || event.method;
    return { record: null, event: { ...event, method, requestId: text("requestId") ?? event.requestId } };
  };
  return { line, raw, zone: toZoneText(values.get("zone")), read };
}

/** Reads a row as a page of one entry. Its age is checked later. */
function readOne(
  route: EventRoute,
  entry: unknown,
  raw: Buffer,
  source: RowSource & Pick<Parameters<typeof readPage>[1], "reader">,
  hasRecord: boolean,
): ReadRow | { readonly problem: string } {
  const { events, records, quarantined } = readPage([raw], { ...source, route, day: null, oldestAt: 0 }, [
    entry,
  ]);
  const [[event], [record = null]] = [events, records];
  if (event === undefined) return { problem: quarantined[0]?.reason ?? "unreadable" };
  return { event, record: hasRecord ? record : null };
}
