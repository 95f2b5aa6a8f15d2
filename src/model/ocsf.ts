import type { ActionStates } from "./action-class.ts";
import { toUrlPart } from "./record-parts.ts";

/** The version of OCSF that every object names. */
export const OCSF_VERSION = "1.8.0";
/** HTTP Activity, of the category Network Activity. */
export const HTTP_ACTIVITY = { category_uid: 4, class_uid: 4002 } as const;
/** The profile with the attributes of what the WAF did. */
export const HTTP_PROFILE = "security_control";
export const PRODUCT = "Shield";
/** Stands where OCSF requires a name and none is known. */
export const UNKNOWN = "unknown";
/** The number for an action or a method that OCSF does not list. The attribute beside it has the platform's word. */
export const OTHER = 99;

/** `activity_id` of each method that OCSF lists; 0 for an unknown method, `OTHER` for any other. */
export const METHODS: ReadonlyMap<string, number> = new Map(
  ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE", "PATCH"].map(
    (method, index) => [method, index + 1] as const,
  ),
);

/** Settings that the objects depend on. */
export interface OcsfSettings {
  /** The name of the platform's vendor; null leaves the attribute out. */
  readonly vendor: string | null;
  readonly actions: ActionStates;
}

/** `action_id` and `disposition_id` of each class of actions. */
export const OUTCOMES = { blocked: [2, 2], challenged: [4, 23], logged: [1, 1] } as const;
/** The words of `logged` that say that the platform only watched, folded as `foldAction` does. */
export const OBSERVED = { words: ["log", "logged", "monitor", "monitored"], outcome: [3, 17] } as const;

/** `severity_id` of each of OCSF's words. */
export const SEVERITY_IDS: ReadonlyMap<string, number> = new Map(
  ["informational", "low", "medium", "high", "critical", "fatal"].map((word, index) => [word, index + 1]),
);

const OCTET = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`;
const IPV4 = String.raw`(?:${OCTET}\.){3}${OCTET}`;
const GROUP = "[0-9a-fA-F]{1,4}";
/** With `::` in the middle: n groups before it, and at most 7 in all. */
const SHORTENED = [1, 2, 3, 4, 5, 6].map((n) => `(?:${GROUP}:){1,${n}}(?::${GROUP}){1,${7 - n}}`);
/**
 * Matches an address that OCSF's type for addresses accepts; a masked address or a pseudonym is none. JavaScript and DuckDB
 * read it alike, as the next one.
 */
export const ADDRESS = `^(?:${IPV4}|(?:${GROUP}:){7}${GROUP}|(?:${GROUP}:){1,7}:|:(?::${GROUP}){1,7}|${SHORTENED.join("|")}|::(?:[fF]{4}:)?${IPV4}|::)$`;
/** Matches the number of a network that stays the same as a number. */
export const NETWORK_NUMBER = "^(?:0|[1-9][0-9]{0,9})$";

const IS_ADDRESS = new RegExp(ADDRESS);
const IS_NETWORK = new RegExp(NETWORK_NUMBER);

/** OCSF wants an address or a name. What the platform, a mask or a pseudonym put in the place of the address is a name. */
export function toSource({ ip, country = "", asn = "" }: { ip: string; country?: string; asn?: string }) {
  return {
    ...(IS_ADDRESS.test(ip) ? { ip } : { name: known(ip) ?? UNKNOWN }),
    location: country === "" ? undefined : { country },
    autonomous_system:
      asn === "" ? undefined : IS_NETWORK.test(asn) ? { number: Number(asn) } : { name: asn },
  };
}

export function toUrl(url: string) {
  if (url === "") return undefined;
  const [head = ""] = url.split("#", 1);
  const query = head.indexOf("?");
  return {
    url_string: url,
    hostname: known(toUrlPart("host", url)),
    path: toUrlPart("path", url),
    query_string: query < 0 ? undefined : known(head.slice(query + 1)),
  };
}

/** Leaves out what is not known. */
export function known(text: string): string | undefined {
  return text === "" ? undefined : text;
}
