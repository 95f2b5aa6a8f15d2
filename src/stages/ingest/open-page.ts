import { isObject } from "#lib/is-object.ts";
import { parseJson } from "#lib/parse-json.ts";
import { sliceEntries } from "#model/slice-entries.ts";

/** A page as received, divided into its entries. */
export interface OpenedPage {
  /** The answer with an empty list of entries. The whole answer if it has no list; undefined if it is not JSON. */
  readonly envelope: unknown;
  /** The entries byte for byte, as views into the body if its form allows that. */
  readonly records: readonly Buffer[];
  /**
   * Returns an entry as plain JSON, where integers beyond 2^53 may be rounded.
   * @throws {SyntaxError} when the page was cut at the wrong places. It must then be opened by `openPage`.
   */
  readPlainEntry(index: number): unknown;
  /** Returns the same entry with exact integers. */
  readEntry(index: number): unknown;
}

/** Opens the array `member` of a JSON object of any form. */
export function openPage(body: Buffer, member: string): OpenedPage {
  const text = body.toString();
  const json = parsePlain(text);
  const list = isObject(json) ? json[member] : undefined;
  if (!isObject(json) || !Array.isArray(list)) {
    return { envelope: json, records: [], readPlainEntry: noEntry, readEntry: noEntry };
  }
  const envelope = { ...json, [member]: [] };
  const records = sliceEntries(body, member);
  if (records?.length !== list.length) return { envelope, ...rewriteEntries(text, member) };
  return { envelope, records, readPlainEntry: (index) => list[index], readEntry: readFrom(records) };
}

/**
 * Cuts the array at every `},{"` without parsing it. Returns null if the page does not have the form that the
 * platform writes. Parsing entry by entry is a third cheaper than parsing the whole page, because no part of an entry
 * outlives its reading. The cuts are right if every piece parses: pieces that are objects, with single commas between
 * them and an object around them, are the whole page. A text that contains the mark makes a piece that does not
 * parse.
 */
export function cutPage(body: Buffer, member: string): OpenedPage | null {
  const list = findList(body, member);
  if (list === null) return null;
  const { start, end, envelope } = list;
  const records: Buffer[] = [];
  for (let at = start; at < end; ) {
    const mark = body.indexOf(`},{"`, at, "latin1");
    const cut = mark === -1 || mark >= end ? end : mark + 1;
    records.push(body.subarray(at, cut));
    at = cut + 1;
  }
  return {
    envelope,
    records,
    readPlainEntry: (index) => JSON.parse(records[index]?.toString() ?? "") as unknown,
    readEntry: readFrom(records),
  };
}

/**
 * Returns the position of the list in a page of the form that the platform writes, and the answer without the list;
 * null for every other form. Reads only the two ends of the page, so the result is right unless the bytes between
 * them are no JSON. The caller names the members that it needs, because a member before another list of objects would
 * not be found.
 */
export function findList(body: Buffer, member: string, needed: readonly string[] = []) {
  const head = `{"${member}":[{`;
  const end = body.lastIndexOf("}]", undefined, "latin1") + 1;
  if (end === 0 || body.toString("latin1", 0, head.length) !== head) return null;
  const envelope = readEnvelope(body.toString("utf8", end + 1));
  if (envelope === null || member in envelope || !needed.every((name) => name in envelope)) return null;
  return { start: head.length - 1, end, envelope: { ...envelope, [member]: [] } };
}

/** Returns the members after the list as an object. */
function readEnvelope(rest: string): Record<string, unknown> | null {
  if (rest !== "}" && !rest.startsWith(',"')) return null;
  try {
    const envelope: unknown = JSON.parse(`{${rest.slice(rest === "}" ? 0 : 1)}`);
    return isObject(envelope) ? envelope : null;
  } catch {
    return null;
  }
}

/** Serialises the entries again, because they cannot be cut out of the body. */
function rewriteEntries(text: string, member: string) {
  const json = parseJson(text) as Record<string, readonly unknown[]>;
  const entries = json[member] ?? [];
  const records = entries.map((entry) => Buffer.from(JSON.stringify(entry) ?? "null"));
  const readEntry = (index: number) => entries[index];
  return { records, readPlainEntry: readEntry, readEntry };
}

function readFrom(records: readonly Buffer[]) {
  return (index: number) => parseJson(records[index]?.toString() ?? "");
}

function noEntry(): undefined {
  return undefined;
}

/** Parses JSON three times as fast as with exact integers. */
function parsePlain(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The text has a byte order mark or is no JSON at all.
    return parseJson(text);
  }
}
