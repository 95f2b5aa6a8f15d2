import { isObject } from "#lib/is-object.ts";
import { parseJson } from "#lib/parse-json.ts";
import { sliceEntries } from "#lib/slice-entries.ts";

/**
 * Returns an answer with an empty list `member`, and the list's entries byte for byte. A hostile answer of the maximum
 * size then becomes objects only entry by entry. The JSON is undefined if the answer without its entries is no JSON.
 */
export function openList(body: Buffer, member: string): { json: unknown; entries: readonly Buffer[] } {
  const list = sliceEntries(body, member);
  if (list !== null) {
    const rest = Buffer.concat([body.subarray(0, list.start + 1), body.subarray(list.end)]);
    const json = parseJson(rest.toString());
    // A list behind it whose name is written with escapes is the one that counts, and has entries.
    const emptied = isObject(json) ? json[member] : null;
    if (Array.isArray(emptied) && emptied.length === 0) return { json, entries: list.items };
  }
  const json = parseJson(body.toString());
  const entries: unknown = isObject(json) ? json[member] : null;
  if (!isObject(json) || !Array.isArray(entries)) return { json, entries: [] };
  const written = entries.map((entry: unknown) => Buffer.from(JSON.stringify(entry)));
  return { json: { ...json, [member]: [] }, entries: written };
}
