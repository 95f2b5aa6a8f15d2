/** What the record of a request says about it. */

import { createHmac } from "node:crypto";
import { isObject, parseJson } from "#lib/json.ts";
import { cleanText, MAX_DIMENSION_CHARS } from "#lib/text.ts";
import { type NamedValue, readHeaders, readMatch, toUrlPart } from "./record-parts.ts";

/** The beginning of a text that is read. */
const MAX_CHARS = 2_048;

/**
 * Idioms of attacks, as parts of one regular expression over lower-case text whose runs of white space are one space. Left out is what
 * ordinary text has as well, such as `concat(`, `--`, `.env` and `system (`. Every repetition has a limit.
 */
const IDIOMS: readonly string[] = [
  // SQL
  String.raw`union ?(?:all |distinct )?\(? ?select\b`,
  String.raw`\( ?select (?:\*|case|count|char|chr|'|"|\d|concat|null|sleep|\(|min|max|@@|top|group_concat|substr|[a-z_.]{1,30} from)`,
  String.raw`\bselect (?:\* from|count ?\(|case when|char ?\(|'|null,|@@|concat ?\(|like ?\(|\d{1,9} ?(?:,|from\b|where\b|#|--|$))`,
  String.raw`\b(?:x?or|and|where|having|not|\|\||&&)[ ('"]{1,5}(\d{1,9})['"]? ?(?:=|<|>|like) ?['"(]{0,3}(?:\d|select)`,
  String.raw`(?:^|[ (])(?<n>\d{1,9}) ?= ?\k<n>(?!\d)`,
  String.raw`(['"])(\w{1,20})\3 ?(?:=|like) ?\3\4`,
  String.raw`['"][ )]{0,5}or [ (]{0,5}(?:['"]\w{0,20}['"] ?(?:=|like|is|in)|(?<w>\w{1,20}) ?= ?\k<w>\b|name\(\))`,
  String.raw`\border by \d{1,3}\b`,
  String.raw`(?:^|[^.\w])sleep ?\( ?\d`,
  String.raw`\bbenchmark ?\( ?\d|\b(?:randomblob|extractvalue|updatexml|load_file|make_set|regexp_substring|crypt_key|raise_error|pg_sleep) ?\(`,
  String.raw`waitfor ?(?:delay|time)`,
  String.raw`\b(?:dbms_(?:pipe|lock)|utl_(?:inaddr|http)|user_lock|xp_cmdshell|sp_password|ctxsys)\b`,
  String.raw`\b(?:information_schema|all_users|sysobjects|sysusers|sysdatabases|sqlite_master|pg_catalog|domain\.domains|mysql\.user)\b|rdb\$`,
  String.raw`(?:cha?r ?\( ?\d{1,3} ?\)[ |,+]{0,6}){2}`,
  String.raw`into (?:out|dump)file`,
  String.raw`(?:['");]|\d) ?(?:drop|truncate|alter) (?:table|database)|;(?: ?)(?:insert into|delete from|update \w{1,30} set|shutdown|exec|declare @)`,
  String.raw`procedure analyse|convert ?\( ?int|\bfrom dual\b|null ?, ?null|@@version|exec master`,
  // Script
  String.raw`<(?:script|iframe|bgsound|frameset)[ />]|<(?:embed|object|base) \w`,
  String.raw`\bon(?:error|load|mouseover|focus|toggle|begin|start|pointer\w{1,8}) ?= ?["'\x60]? ?(?:alert|eval|prompt|confirm|fetch|document|window|import|javascript|self|top|this)\b`,
  String.raw`(?:javascript|vbscript|livescript):(?! |void|;|["'\x60])`,
  String.raw`\b(?:alert|prompt|confirm) ?(?:\(|&#40;|\x60) ?(?:['"\x60/]|\d|document|string|xss)`,
  String.raw`document\.(?:cookie|domain|write ?\()|fromcharcode`,
  String.raw`<(?:svg|img|body|input|details|video|audio|math|marquee)[^>]{0,80}\bon\w{3,20} ?=`,
  String.raw`data: ?text/html|-moz-binding|: ?expression ?\(|srcdoc ?=`,
  String.raw`<!entity|<!\[cdata\[<|<\?import|<!doctype \w{1,20} ?\[`,
  // Traversal and files
  String.raw`(?:\.\.[/\\]{1,3}){3}`,
  String.raw`\.\.\\|\.\.;/|\\\.\.|\.\.%`,
  String.raw`etc[/\\]{1,3}(?:passwd|shadow|hosts|group|issue)\b|\bboot\.ini|\bwin\.ini|/proc/self|web-inf`,
  String.raw`winnt|system32|\bcmd\.exe|\bcmd ?/c\b`,
  String.raw`/\.(?:git|svn|hg|aws|ssh|htpasswd|htaccess|env(?:\.\w{1,20}){0,2}|npmrc|netrc|pgpass)(?:[/?]|$)|wp-config\.php|\bid_rsa\b|\.aws/credentials`,
  String.raw`(?:php|expect|phar|gopher|dict|zip|glob)://|\bfile:///?(?:etc|proc|c:)`,
  String.raw`(?:https?|ftp)://(?:\d{1,3}\.){3}\d{1,3}(?:/[\w.-]{1,40}\.(?:txt|php|sh|jpg|gif|exe)\b|$)|169\.254\.169\.254`,
  String.raw`/(?:c99|r57|shell)\.(?:php|txt)`,
  // Shell
  String.raw`(?:[;|&\x60\n]|\$\() ?(?:/bin/)?(?:cat|id|uname|whoami|wget|curl|nc|ping|netstat|nslookup|ifconfig|ls|dir|sleep)(?: -| /|[;|&\x60)]| http|$)`,
  String.raw`\$\( ?(?:curl|wget|id|whoami|cat|sleep|nslookup|ping|uname)\b`,
  String.raw`\(\) ?\{ ?:|/dev/tcp/|\bnc -[elv]|(?:bash|sh) -[ci] |chmod (?:\+x|777)|\bpowershell\b|\bcertutil\b`,
  String.raw`[;|&\x60(] ?/?bin/(?:ba|z|da|c|k)?sh\b|bin/(?:cat|ls|nc|id)\b`,
  // Template, language and lookup
  String.raw`(?:\{\{|\$\{|#\{|<%=|\{%) ?\d{1,7} ?\* ?'?\d`,
  String.raw`__(?:class|mro|subclasses|globals|builtins)__|constructor\.constructor|\{\{ ?(?:config|self|request)\b`,
  String.raw`java\.lang\.(?:runtime|process)|getruntime ?\(|class\.?loader|_memberaccess|\bognl\b|freemarker\.template`,
  String.raw`child_process['"]|process\.mainmodule|return process`,
  String.raw`jndi:|\$\{(?:jndi|lower:|upper:|::-|\$\{)|\$\{env:\w{1,30}:-`,
  String.raw`<\?php|\$_(?:get|post|request|cookie|server|files)\b|<\?=`,
  String.raw`\b(?:base64_decode|passthru|shell_exec|proc_open|popen|phpinfo|call_user_func) ?\(|\beval ?\( ?(?:\$|base64|'|"|atob|string)|\bexec ?\( ?['"]`,
  String.raw`o:\d{1,3}:"\w{1,40}":\d|rO0AB`.toLowerCase(),
];

const IDIOM = new RegExp(IDIOMS.map((idiom) => `(?:${idiom})`).join("|"));

/**
 * Returns whether a text holds an idiom of an attack: SQL, script, traversal, shell, template or lookup injection. The text may
 * be encoded for a URL, once or twice. A text without one may be an attack as well, and one with one may be ordinary.
 */
export function hasIdiom(text: string): boolean {
  return IDIOM.test(decode(text.slice(0, MAX_CHARS)));
}

/** Returns the text in lower case without the usual disguises: escapes, comments as spaces, bytes that UTF-8 forbids. */
function decode(text: string): string {
  const toChar = (_: string, hex: string) => String.fromCharCode(Number.parseInt(hex, 16));
  let plain = text;
  for (let times = 0; times < 2 && plain.includes("%"); times += 1)
    plain = plain.replace(/%([0-9a-f]{2})/gi, toChar);
  if (/[\xc0\xc1]/.test(plain))
    plain = plain.replace(/\xc0[\xae.]/g, ".").replace(/\xc0[\xaf/]|\xc1./gs, "/");
  if (plain.includes("\\x")) plain = plain.replace(/\\x([0-9a-f]{2})/gi, toChar);
  if (plain.includes("&#")) {
    plain = plain.replace(/&#x0{0,6}([0-9a-f]{2});?/gi, toChar);
    plain = plain.replace(/&#0{0,6}(\d{2,3});?/g, (_, decimal) => String.fromCharCode(Number(decimal)));
  }
  return plain
    .toLowerCase()
    .replace(/\/\*\*\/|\0/g, " ")
    .replace(/[\s+]+/g, " ");
}

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
