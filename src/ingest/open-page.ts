import { parseJson } from "../edge/parse-json.ts";
import { sliceEntries } from "./slice-entries.ts";

/** A page as received, opened into its entries. */
export interface OpenedPage {
  /** The answer with an empty list of entries; the whole of it when there is no list; undefined when it is not JSON. */
  readonly envelope: unknown;
  /** The entries as plain JSON, where integers beyond 2^53 may be rounded. */
  readonly entries: readonly unknown[];
  /** The same, byte for byte, as views into the body wherever its form allows to cut them out. */
  readonly records: readonly Buffer[];
  /** An entry with every digit of its integers. */
  readEntry(index: number): unknown;
}

/** Opens the array `member` of a JSON object. */
export function openPage(body: Buffer, member: string): OpenedPage {
  const json = parsePlain(body.toString());
  const list = isObject(json) ? json[member] : undefined;
  if (!isObject(json) || !Array.isArray(list)) {
    return { envelope: json, entries: [], records: [], readEntry: () => undefined };
  }
  const envelope = { ...json, [member]: [] };
  const records = sliceEntries(body, member);
  if (records?.length !== list.length) return { envelope, ...rewriteEntries(body, member) };
  return {
    envelope,
    entries: list,
    records,
    readEntry: (index) => parseJson(records[index]?.toString() ?? ""),
  };
}

/** Entries that cannot be cut out of the body are written again. */
function rewriteEntries(body: Buffer, member: string) {
  const json = parseJson(body.toString()) as Record<string, readonly unknown[]>;
  const entries = json[member] ?? [];
  const records = entries.map((entry) => Buffer.from(JSON.stringify(entry) ?? "null"));
  return { entries, records, readEntry: (index: number) => entries[index] };
}

/** Three times as fast on a page as reading every integer exactly. */
function parsePlain(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A byte order mark, or no JSON at all.
    return parseJson(text);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
