/** Why the service does not start or does not reach the platform, and what to do about it. */

import type { Config } from "#config/config.ts";
import { describeDisk, isFullDisk, readDiskSpace } from "#lib/disk.ts";
import { toError } from "#lib/errors.ts";
import { showTime } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { EdgeError, type EdgeErrorCode } from "#platform/edge-error.ts";
import type { EdgeOperation } from "#platform/transport/call.ts";
import { findCluster } from "#store/embedded/place-cluster.ts";
import { describePostgresFailure, fullDiskOf } from "#store/embedded/postgres-error.ts";
import { type RecordedOutage, readOutageFile } from "#store/embedded/supervise-postgres.ts";

/** The next step for a person who runs the service, by error code. */
const REMEDIES: Partial<Record<EdgeErrorCode, string>> = {
  EDGE_UNAUTHORIZED:
    "check the key of EDGE_API_KEY, of the file that EDGE_API_KEY_FILE names, or of the account",
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

/** Size of one log file (WAL) of Postgres. Without space for one, the server ends and its clients lose their connections. */
const LOG_FILE_BYTES = 17_000_000;

/** Returns one line with the cause of a failed start and the next step, or null if the database is not the cause. */
export function describeStartFailure(
  thrown: unknown,
  { databaseUrl, dataDir }: Pick<Config, "databaseUrl" | "dataDir">,
): string | null {
  const failure = describePostgresFailure(thrown);
  if (databaseUrl !== null) return failure;
  const free = readDiskSpace(findCluster(dataDir))?.freeBytes ?? Number.POSITIVE_INFINITY;
  const isFull = isFullDisk(thrown) || (failure !== null && free < LOG_FILE_BYTES);
  return isFull ? describePostgresFailure(fullDiskOf(dataDir, thrown)) : failure;
}

/** How long an ended outage is shown. */
const SHOWN_MS = 24 * 3_600_000;

/** Returns what is known of the embedded Postgres that is down now, in lines; null where it is not known to be down. */
export function describeOutage(dataDir: string): string | null {
  const outage = readOutageFile(dataDir);
  if (outage === null || outage.untilMs !== null) return null;
  const space = readDiskSpace(findCluster(dataDir));
  const facts = space === null ? `the disk of ${dataDir} is full` : describeDisk(space);
  return [
    `The service runs, but its embedded Postgres has been down since ${showTime(outage.sinceMs)} UTC (${outage.reason}).`,
    `Failed restarts: ${outage.failedRestarts}. The service tries again at least every 30 s.`,
    ...lastLines(outage),
    ...(outage.isDiskFull ? [`The disk is full: ${facts}. Free space or enlarge the disk.`] : []),
  ].join("\n");
}

/** Returns the lines about an outage that ended less than a day before `nowMs`. */
export function describePastOutage(dataDir: string, nowMs: number): string[] {
  const outage = readOutageFile(dataDir);
  if (outage === null || outage.untilMs === null || nowMs - outage.untilMs > SHOWN_MS) return [];
  const { sinceMs, untilMs, reason } = outage;
  const span = `from ${showTime(sinceMs)} to ${showTime(untilMs)} UTC`;
  return [`The embedded Postgres was down ${span} (${reason}); it was restarted.`, ...lastLines(outage)];
}

function lastLines({ lines }: RecordedOutage): string[] {
  return lines.length === 0 ? [] : ["Its last error lines:", ...lines.map((line) => `  ${line}`)];
}
