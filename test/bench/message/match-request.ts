import type { Client } from "./clients.ts";
import { ruleOf } from "./rules.ts";
import { testText } from "./text-tests.ts";
import { type Text, textOf } from "./texts.ts";

type Part = readonly [name: string, text: Text];

/** What an agent sends. */
export interface Request {
  readonly client: Client;
  readonly method: string;
  readonly path: string;
  readonly host?: string;
  readonly query?: readonly Part[];
  readonly body?: {
    readonly type: string | null;
    readonly parts: readonly Part[];
    readonly isBroken?: boolean;
  };
  readonly cookies?: readonly Part[];
  /** Left out: the header of a browser on the site. `null`: none. */
  readonly referer?: string | null;
  readonly headers?: readonly Part[];
  /** What the site's answer shows by mistake. */
  readonly answer?: "sql" | "php" | "java" | "directory";
}

export interface Hit {
  readonly rule: string;
  readonly variable: string;
  readonly matched: string;
}

export const FORM = "application/x-www-form-urlencoded";
const ALLOWED_TYPES =
  /^(?:application\/(?:x-www-form-urlencoded|json|xml|soap\+xml|csp-report)|multipart\/form-data|text\/(?:xml|plain))\b/;
const SCANNERS =
  /nikto|sqlmap|nuclei|wpscan|zgrab|gobuster|fuzz faster|masscan|nmap|acunetix|netsparker|openvas|dirbuster|feroxbuster|wfuzz|jorgee|arachni/i;
const SCRIPTS = /python-(?:requests|urllib)|libwww-perl|go-http-client|aiohttp|okhttp-bot|java\/1/i;
const RESTRICTED_FILES =
  /\/\.(?:env|git|svn|htaccess|htpasswd|DS_Store|aws|npmrc)|wp-config\.php|\/web\.config|id_rsa/i;
const RESTRICTED_ENDS = /\.(?:bak|sql|old|backup|ini|log|conf|config|mdb|dll|swp|key|pem|csproj|cfg)~?$/i;
const NUMERIC_HOST = /^\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?$/;
const ANSWERS = { sql: "951230", php: "953100", java: "952110", directory: "950130" } as const;

/** Returns the rules of a paranoia level that match a request, in the order of their numbers. */
export function matchRequest(request: Request, paranoia: 1 | 2, methods: RegExp): Hit[] {
  const hits = new Map<string, Hit>();
  const add = (rule: string, variable: string, matched: string) => {
    if (ruleOf(rule).paranoia <= paranoia && !hits.has(rule)) hits.set(rule, { rule, variable, matched });
  };
  matchProtocol(request, methods, add);
  for (const [collection, parts] of collectionsOf(request))
    for (const [name, text] of parts) {
      const isFile = collection === "FILES";
      for (const [rule, matched] of typeof text === "string" ? testText(text) : text.hits)
        if (
          isFile
            ? rule.startsWith("9201") || rule === "933110"
            : collection !== "REQUEST_HEADERS" || /^(?:944|932171)/.test(rule)
        )
          add(rule, `${collection}:${name}`, matched);
      if (isFile) matchFile(textOf(text), add);
    }
  if (request.answer !== undefined) add(ANSWERS[request.answer], "RESPONSE_BODY", request.answer);
  return [...hits.values()].sort((a, b) => a.rule.localeCompare(b.rule));
}

function collectionsOf({ query = [], body, cookies = [], headers = [] }: Request) {
  const isUpload = body?.type?.startsWith("multipart/") === true;
  const parts = body?.parts ?? [];
  return [
    ["ARGS", query],
    ["ARGS", isUpload ? parts.filter(([name]) => name !== "file") : parts],
    ["FILES", isUpload ? parts.filter(([name]) => name === "file") : []],
    ["REQUEST_COOKIES", cookies],
    ["REQUEST_HEADERS", headers],
  ] as const;
}

type Add = (rule: string, variable: string, matched: string) => void;

function matchProtocol(request: Request, methods: RegExp, add: Add): void {
  const { client, method, path, host, body, headers = [] } = request;
  const { ua } = client;
  if (!methods.test(method)) add("911100", "REQUEST_METHOD", method);
  const scanner = SCANNERS.exec(ua) ?? SCRIPTS.exec(ua);
  if (scanner !== null)
    add(SCANNERS.test(ua) ? "913100" : "913101", "REQUEST_HEADERS:User-Agent", scanner[0]);
  if (ua === "") add("920320", "REQUEST_HEADERS:User-Agent", "");
  if (host !== undefined && NUMERIC_HOST.test(host)) add("920350", "REQUEST_HEADERS:Host", host);
  if (host === "") add("920280", "REQUEST_HEADERS:Host", "");
  if (!client.sendsAccept) add("920300", "REQUEST_HEADERS:Accept", "0");
  const accept = headers.find(([name]) => name === "Accept");
  if (accept !== undefined && /charset/i.test(textOf(accept[1])))
    add("920600", "REQUEST_HEADERS:Accept", textOf(accept[1]));
  if (body !== undefined && body.type === null) add("920340", "REQUEST_HEADERS:Content-Type", "0");
  if (body?.type != null && !ALLOWED_TYPES.test(body.type))
    add("920420", "REQUEST_HEADERS:Content-Type", body.type);
  if (body?.isBroken === true) add("200002", "REQBODY_ERROR", "1");
  const file = RESTRICTED_FILES.exec(path);
  if (file !== null) add("930130", "REQUEST_FILENAME", file[0]);
  const end = RESTRICTED_ENDS.exec(path);
  if (end !== null) add("920440", "REQUEST_BASENAME", end[0]);
  if (/%25[0-9a-f]{2}/i.test(path)) add("920230", "REQUEST_URI", path.slice(0, 60));
  for (const [rule, matched] of testText(path))
    if (rule === "930100" || rule === "930110" || rule === "930120" || rule === "932160")
      add(rule, "REQUEST_URI_RAW", matched);
}

function matchFile(name: string, add: Add): void {
  const odd = /['";=]/.exec(name);
  if (odd !== null) {
    add("920120", "FILES:file", name.slice(0, 60));
    add("920121", "FILES:file", name.slice(0, 60));
  }
  if (/\.(?:php\d?|phtml|phar)\b/i.test(name)) add("933110", "FILES:file", name);
  if (/\.(?:jsp|aspx?|config|htaccess)$/i.test(name)) add("932180", "FILES:file", name);
}
