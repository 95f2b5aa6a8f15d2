import { cleanText, MAX_DIMENSION_CHARS } from "#lib/clean-text.ts";
import { isObject } from "#lib/is-object.ts";
import { parseJson } from "#lib/parse-json.ts";
import { toUrlPart } from "#model/url-parts.ts";
import type { RequestFacts } from "./evidence.ts";

/** Longest matched text that is read. */
const MAX_MATCHED_CHARS = 4_096;

/** Matches a variable of a request. A trigger's key may also be an operator, such as PMF, or a variable of the WAF itself. */
const PARAMETER =
  /^(?:(?:ARGS|ARGS_GET|ARGS_POST|FILES|REQUEST_COOKIES|REQUEST_HEADERS)(?:_NAMES)?(?::.+)?|(?:XML|JSON)(?::.+)?|REQUEST_(?:URI|URI_RAW|FILENAME|BASENAME|LINE|BODY|METHOD|PROTOCOL)|QUERY_STRING)$/is;

/**
 * Reads what a record says about its request: an entry of the list, whose `log` is text, or a row of a search, whose `log` is
 * an object and which has no method. `url` is the event's. All of it is hostile; what cannot be read is not known.
 */
export function readRequest(record: Buffer, url: string): RequestFacts {
  const entry = toObject(parseJson(record.toString()));
  const log = toObject(typeof entry["log"] === "string" ? parseJson(entry["log"]) : entry["log"]);
  const { Key, Value } = toObject(log["TriggerMatch"]);
  const { method } = toObject(entry["labels"]);
  return {
    method: typeof method === "string" ? cleanText(method, MAX_DIMENSION_CHARS).toUpperCase() : "",
    parameter: typeof Key === "string" && PARAMETER.test(Key) ? cleanText(Key, MAX_DIMENSION_CHARS) : null,
    matched: typeof Value === "string" ? cleanText(Value, MAX_MATCHED_CHARS) : null,
    ...readHeaders(log["Headers"], url),
  };
}

function readHeaders(found: unknown, url: string): Pick<RequestFacts, "hasSession" | "hasOwnReferer"> {
  const headers = new Map<string, string>();
  for (const header of Array.isArray(found) ? (found as readonly unknown[]) : []) {
    const { Name, Value } = toObject(header);
    if (typeof Name === "string" && typeof Value === "string") headers.set(Name.toLowerCase(), Value);
  }
  if (headers.size === 0) return { hasSession: null, hasOwnReferer: null };
  const has = (name: string) => (headers.get(name) ?? "") !== "";
  const host = toUrlPart("host", url) || toUrlPart("host", `https://${headers.get("host") ?? ""}`);
  const referer = toUrlPart("host", headers.get("referer") ?? "");
  return {
    hasSession: has("cookie") || has("authorization"),
    hasOwnReferer: host === "" ? null : referer === host,
  };
}

function toObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}
