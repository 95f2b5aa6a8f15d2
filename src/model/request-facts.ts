/** What the record of a request says about it. */
import { createHmac } from "node:crypto";
import { isObject, parseJson } from "#lib/json.ts";
import { cleanText, MAX_DIMENSION_CHARS } from "#lib/text.ts";
import { hasIdiom } from "./idioms.ts";
import { type NamedValue, readHeaders, readMatch, toUrlPart } from "./record-parts.ts";

/** The facts that are yes or no, in the order of their bits. */
export const FACT_NAMES = ["hasSession", "hasOwnReferer", "hasIdiom", "isTool", "hasBody"] as const;
export type FactName = (typeof FACT_NAMES)[number];

/**
 * The facts of an event's request. They are read once, when its record arrives, and are columns of the event. A fact that the
 * record does not hold is null, or an empty text.
 *
 * `hasSession`: a Cookie or an Authorization header. `hasOwnReferer`: a Referer on its own host. `hasIdiom`: the matched text or
 * the URL holds an idiom of an attack. `isTool`: the user agent or the rule names a tool of attackers. `hasBody`: a body was sent.
 */
export interface RequestFacts extends Readonly<Record<FactName, boolean | null>> {
  readonly method: string;
  /** The platform's id of the request: events with the same id are one request. */
  readonly requestId: string;
  /** Keyed hash of the part of the request and the text that matched: equal texts have equal keys. A signed 32-bit number. */
  readonly matchedKey: number | null;
}

/** The part of a request that matched, and its text; null if the record does not say. Hostile text. */
interface RequestMatch {
  readonly parameter: string | null;
  readonly matched: string | null;
}

/** Everything that a record says about its request. */
export type RequestDetails = RequestFacts & RequestMatch;

export const NO_FACTS: RequestFacts = {
  method: "",
  requestId: "",
  matchedKey: null,
  hasSession: null,
  hasOwnReferer: null,
  hasIdiom: null,
  isTool: null,
  hasBody: null,
};

/** The facts as columns of an event. Null is "not known yet", and an empty text is "known to be empty". */
export interface FactColumns {
  readonly method: string | null;
  readonly requestId: string | null;
  readonly matchedKey: number | null;
  /** A number of `packFacts`. */
  readonly facts: number | null;
}

/** The columns of an event whose record has not arrived. */
export const UNKNOWN_FACTS: FactColumns = { method: null, requestId: null, matchedKey: null, facts: null };

/** Returns the facts as columns. What the record does not hold is not known yet: another route's record may hold it. */
export function toFactColumns({ method, requestId, matchedKey, ...facts }: RequestFacts): FactColumns {
  const bits = packFacts(facts);
  return {
    method: method === "" ? null : method,
    requestId: requestId === "" ? null : requestId,
    matchedKey,
    facts: bits === 0 ? null : bits,
  };
}

/** Returns the facts that the columns of an event hold; null if none of them is known. */
export function toRequestFacts({ method, requestId, matchedKey, facts }: FactColumns): RequestFacts | null {
  if (method === null && requestId === null && matchedKey === null && facts === null) return null;
  return { method: method ?? "", requestId: requestId ?? "", matchedKey, ...unpackFacts(facts) };
}

/** Returns the facts as a number: of each fact one bit that it is known, and one that it is true. */
export function packFacts(facts: Readonly<Record<FactName, boolean | null>>): number {
  return FACT_NAMES.reduce((bits, name, place) => {
    const fact = facts[name];
    return fact === null ? bits : bits | ((fact ? 3 : 1) << (2 * place));
  }, 0);
}

/** Returns the facts of a number that `packFacts` has returned. Null, for an event without a record, holds none. */
export function unpackFacts(bits: number | null): Record<FactName, boolean | null> {
  const of = (place: number) => ((bits ?? 0) >> (2 * place)) & 3;
  return Object.fromEntries(
    FACT_NAMES.map((name, place) => [name, of(place) === 0 ? null : of(place) === 3]),
  ) as Record<FactName, boolean | null>;
}

/** Events of one request come within this time if nothing names the request. */
export const SAME_REQUEST_MS = 2_000;
/** Longest matched text that is read. */
const MAX_MATCHED_CHARS = 4_096;
const MAX_ID_CHARS = 64;

/** Matches a variable of a request. A trigger's key may also be an operator, such as PMF, or a variable of the WAF itself. */
const PARAMETER =
  /^(?:(?:ARGS|ARGS_GET|ARGS_POST|FILES|REQUEST_COOKIES|REQUEST_HEADERS)(?:_NAMES)?(?::.+)?|(?:XML|JSON)(?::.+)?|REQUEST_(?:URI|URI_RAW|FILENAME|BASENAME|LINE|BODY|METHOD|PROTOCOL)|QUERY_STRING)$/is;

/**
 * Reads what a record says about its request: an entry of the list, whose `log` is text, or a row of a search, whose `log` is
 * an object and which has no method. `of` holds the event's own columns. All of it is hostile; what cannot be read is not known.
 */
export function readRequest(record: Buffer, of: RequestOf, hashKey: string): RequestDetails {
  return readParsedRequest(parseJson(record.toString()), of, hashKey);
}

/** The columns of an event that its facts are read from beside its record. */
interface RequestOf {
  readonly url: string;
  readonly ua: string;
  readonly ruleId: string;
}

/** Does the same for a record that was parsed. */
export function readParsedRequest(record: unknown, of: RequestOf, hashKey: string): RequestDetails {
  const entry = toObject(record);
  const log = toObject(typeof entry["log"] === "string" ? parseJson(entry["log"]) : entry["log"]);
  const { name, value } = readMatch(log["TriggerMatch"]) ?? {};
  const headers = toMap(readHeaders(log["Headers"]));
  const matched = typeof value === "string" ? cleanText(value, MAX_MATCHED_CHARS) : null;
  const { method } = toObject(entry["labels"]);
  const { UrlEncodedBody: body } = log;
  return {
    method: typeof method === "string" ? cleanText(method, MAX_DIMENSION_CHARS).toUpperCase() : "",
    requestId: cleanText(headers?.get("cdn-requestid") ?? "", MAX_ID_CHARS),
    matchedKey:
      matched === null ? null : hashText(`${typeof name === "string" ? name : ""}\n${matched}`, hashKey),
    parameter: toParameter(name),
    matched,
    ...readVisitor(headers, of.url),
    hasIdiom: matched === null && !of.url.includes("?") ? null : holdsIdiom({ url: of.url, matched }),
    isTool: isToolRule(of.ruleId) || (of.ua === "" ? null : isToolAgent(of.ua)),
    hasBody: body === undefined ? null : typeof body === "string" && body !== "",
  };
}

/** Returns the key of a record's match if it is a variable of the request; null for any other. */
export function toParameter(key: unknown): string | null {
  return typeof key === "string" && PARAMETER.test(key) ? cleanText(key, MAX_DIMENSION_CHARS) : null;
}

/** Returns whether the matched text of a request, or its URL, holds an idiom of an attack. */
export function holdsIdiom({ matched, url }: Pick<RequestMatch, "matched"> & { url: string }): boolean {
  // A host may be an address, which is an idiom in a parameter.
  return hasIdiom(matched ?? "") || hasIdiom(url.replace(/^[a-z]{1,10}:\/\/[^/?#]{0,300}/i, ""));
}

function hashText(text: string, key: string): number {
  return createHmac("sha256", key).update(text).digest().readInt32BE(0);
}

/** Returns the headers by their names in lower case; null if the record has none. */
function toMap(found: readonly NamedValue[]): ReadonlyMap<string, string> | null {
  const headers = new Map<string, string>();
  for (const { name, value } of found)
    if (typeof name === "string" && typeof value === "string") headers.set(name.toLowerCase(), value);
  return headers.size === 0 ? null : headers;
}

function readVisitor(
  headers: ReadonlyMap<string, string> | null,
  url: string,
): Pick<RequestFacts, "hasSession" | "hasOwnReferer"> {
  if (headers === null) return { hasSession: null, hasOwnReferer: null };
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

/**
 * User agents of tools that search sites for weaknesses, from their public documentation and the core rule set's
 * `scanners-user-agents.data`. Libraries that ordinary programs use as well, such as curl, are left out.
 */
const AGENTS =
  /\b(?:nikto|sqlmap|nuclei|wpscan|wfuzz|ffuf|fuzz faster|feroxbuster|gobuster|dirbuster|dirb|dirsearch|zgrab|masscan|nmap|zmap|acunetix|netsparker|invicti|nessus|openvas|qualys|burp ?suite|burpcollaborator|owasp zap|zaproxy|arachni|w3af|skipfish|vega|havij|commix|jaeles|joomscan|droopescan|whatweb|xsstrike|dalfox|paros|webshag|wapiti|censysinspect|expanse|internetmeasurement|l9explore|leakix|httpx|katana|gospider|fimap|grabber|metis|jorgee|morfeus|zmeu|muieblackcat|absinthe|bsqlbf|sqlninja|pangolin|brutus|hydra|dotdotpwn|struts-pwn)\b/i;

/** Returns whether a user agent names such a tool. */
export function isToolAgent(ua: string): boolean {
  return AGENTS.test(ua.slice(0, 500));
}

const BOT = /bot|crawl|spider|monitor/i;
const BROWSER = /^(?:Mozilla|Opera)\/\d/;

/** Returns whether a user agent names itself a bot. */
export function isBotAgent(ua: string): boolean {
  return BOT.test(ua.slice(0, 500));
}

/** Returns whether a user agent is a program's. Every browser begins alike. Crawlers do, too, and name themselves. */
export function isProgramAgent(ua: string): boolean {
  return !BROWSER.test(ua) || isBotAgent(ua);
}

/**
 * Returns whether a rule of the core rule set finds tools that search sites for weaknesses: by their user agents, headers and paths.
 * 913101 and 913102 find libraries and crawlers, which ordinary programs use as well.
 */
export function isToolRule(ruleId: string): boolean {
  return /^9131[012]0$/.test(ruleId);
}
