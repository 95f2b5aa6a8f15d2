import { EdgeError, type EdgeErrorCode } from "#adapters/edge/edge-error.ts";
import type { EdgeOperation } from "#adapters/edge/transport/call.ts";
import { toError } from "#lib/errors.ts";
import { escapeText } from "#lib/text.ts";

/** The next step for a person who runs the service, by error code. */
const REMEDIES: Partial<Record<EdgeErrorCode, string>> = {
  EDGE_UNAUTHORIZED: "check the key of EDGE_API_KEY or of the file that EDGE_API_KEY_FILE names",
  EDGE_FORBIDDEN: "check what the key (EDGE_API_KEY or EDGE_API_KEY_FILE) may do",
  EDGE_WINDOW: "ask for a time within the last 72 hours: the platform keeps events no longer",
  EDGE_NETWORK: "check EDGE_API_URL and the network connection to it",
  EDGE_TIMEOUT: "check EDGE_API_URL and the network connection to it",
  EDGE_MALFORMED: "check EDGE_API_URL: the answer is not in the platform's format",
  EDGE_CONTRADICTORY: "try again; if the error stays, send the request id to the platform's support",
};

const IDS_OF_EVENTS = "check EDGE_API_URL and the ids (EDGE_SHIELD_ZONES)";
const IDS_OF_RULE = "check EDGE_API_URL, the zone and the rule's id";

/** The next step if the platform found nothing and its answer has no error key. */
const IDS: Readonly<Record<EdgeOperation, string>> = {
  "search-event-logs": IDS_OF_EVENTS,
  "list-event-logs": IDS_OF_EVENTS,
  "export-event-logs": IDS_OF_EVENTS,
  "get-recommendation": IDS_OF_RULE,
  "get-rule-metrics": IDS_OF_RULE,
  "list-api-keys": "check EDGE_API_URL",
  "set-hostname-key-type": "check EDGE_API_URL, the pull zone's id and the hostname",
  "check-dns-zone": "check EDGE_API_URL",
  "add-container": "check EDGE_API_URL and the application's id",
  "update-application": "check EDGE_API_URL and the application's id",
  "delete-volume-instances": "check EDGE_API_URL, the application's and the volume's id",
};

const TYPED_IDS_OF_RULE = "check the typed ids (--zone and --rule) and EDGE_API_URL";

/** The next step if a person typed the ids. The other operations use the text of `IDS`. */
const TYPED_IDS: Readonly<Partial<Record<EdgeOperation, string>>> = {
  "get-recommendation": TYPED_IDS_OF_RULE,
  "get-rule-metrics": TYPED_IDS_OF_RULE,
};

/** The next step for each kind of the platform's error key. */
const MISSING: readonly (readonly [key: RegExp, remedy: string])[] = [
  [/shieldzone/i, "check the shield zone's id (EDGE_SHIELD_ZONES) and whether the key may see the zone"],
  [/waf_rule/i, "check the rule's id: the zone has no such rule, or nothing triggered it"],
  [/hostname/i, "check the hostname: it must belong to the pull zone"],
  [/pull_?zone/i, "check the pull zone's id"],
  [/dns_?zone/i, "check the name of the DNS zone"],
];

function describePlan({ operation, errorKey }: EdgeError): string {
  if (errorKey !== null && /ai_recommendation/i.test(errorKey))
    return "the AI recommendations of this account's plan are used up";
  const isOfEvents = /^(?:search|list|export)-event-logs$/.test(operation);
  const isOther = errorKey !== null && errorKey.includes(".") && !/event_logs/i.test(errorKey);
  return `the plan of this account does not include ${isOfEvents && !isOther ? "event logs" : "this"}`;
}

/** Returns the next step after this failure, or null if there is none. `typed`: a person typed the ids of the call. */
export function findRemedy(error: EdgeError, { typed = false } = {}): string | null {
  const { code, errorKey, operation } = error;
  if (code === "EDGE_PLAN") return describePlan(error);
  if (code !== "EDGE_NOT_FOUND") return REMEDIES[code] ?? null;
  return (
    MISSING.find(([key]) => errorKey !== null && key.test(errorKey))?.[1] ??
    (typed ? (TYPED_IDS[operation] ?? IDS[operation]) : IDS[operation])
  );
}

/** Returns one line about a failed call, with the next step. */
export function describePlatformFailure(thrown: unknown): string {
  const error = toError(thrown);
  if (!(error instanceof EdgeError)) return escapeText(error.message);
  const remedy = findRemedy(error);
  return `${error.code} ${error.message}${remedy === null ? "" : `: ${remedy}`}`;
}
