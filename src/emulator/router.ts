/** Finds the route of a request, and refuses wrong keys. */
import type { Call, EmulatorContext, Operation } from "./emulator-context.ts";
import { json, minimalError, problem, type Reply } from "./reply.ts";
import {
  addContainer,
  checkDnsZone,
  deleteVolumeInstances,
  listApiKeys,
  setHostnameKeyType,
  updateApplication,
} from "./routes/account.ts";
import { containerProblem } from "./routes/bodies.ts";
import { listEventLogs } from "./routes/list-event-logs.ts";
import { recommendRule, ruleMetrics } from "./routes/rules.ts";
import { exportEventLogs, searchEventLogs } from "./routes/search-event-logs.ts";

type Handler = (context: EmulatorContext, call: Call) => Reply | Promise<Reply>;

interface Route {
  readonly method: string;
  readonly operation: Operation;
  readonly handle: Handler;
  readonly segments: readonly string[];
}

function route(method: string, path: string, operation: Operation, handle: Handler): Route {
  return { method, operation, handle, segments: path.split("/") };
}

const ROUTES: readonly Route[] = [
  route("GET", "/apikey", "list-api-keys", listApiKeys),
  route("POST", "/pullzone/:id/updatePrivateKeyType", "set-hostname-key-type", setHostnameKeyType),
  route("POST", "/dnszone/checkavailability", "check-dns-zone", checkDnsZone),
  route("POST", "/mc/apps/:appId/containers", "add-container", addContainer),
  route("PUT", "/mc/apps/:appId", "update-application", updateApplication),
  route("DELETE", "/mc/apps/:appId/volumes/:volumeId", "delete-volume-instances", deleteVolumeInstances),
  route("POST", "/shield/event-logs/:shieldZoneId/search", "search-event-logs", searchEventLogs),
  route("POST", "/shield/event-logs/:shieldZoneId/export", "export-event-logs", exportEventLogs),
  // The first page: no token segment, or an empty one.
  route("GET", "/shield/event-logs/:shieldZoneId/:date", "list-event-logs", listEventLogs),
  route("GET", "/shield/event-logs/:shieldZoneId/:date/:continuationToken", "list-event-logs", listEventLogs),
  route(
    "GET",
    "/shield/waf/rules/review-triggered/ai-recommendation/:shieldZoneId/:ruleId",
    "recommend-rule",
    recommendRule,
  ),
  route("GET", "/shield/metrics/shield-zone/:shieldZoneId/waf-rule/:ruleId", "rule-metrics", ruleMetrics),
];

/** Returns the parameters of a path, each decoded by itself, so that a token's `%2F` is not a separator. */
export function matchPath(segments: readonly string[], path: string): Record<string, string> | undefined {
  const parts = path.split("/");
  if (parts.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const part = parts[index] ?? "";
    if (!segment.startsWith(":")) {
      if (part !== segment) return undefined;
      continue;
    }
    params[segment.slice(1)] = decodePart(part);
  }
  return params;
}

/**
 * Decodes a part of a path. A part that cannot be decoded stays unchanged, and the route refuses it like any other
 * wrong value.
 */
function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export type Match =
  | { readonly kind: "found"; readonly route: Route; readonly params: Record<string, string> }
  | { readonly kind: "wrong-method"; readonly allowed: readonly string[] }
  | { readonly kind: "unknown" };

export function matchRoute(method: string, path: string): Match {
  const allowed: string[] = [];
  for (const route of ROUTES) {
    const params = matchPath(route.segments, path);
    if (params === undefined) continue;
    // A HEAD is a GET whose answer has no body, as in every HTTP server. Node leaves the body out.
    const methods = route.method === "GET" ? ["GET", "HEAD"] : [route.method];
    if (methods.includes(method)) return { kind: "found", route, params };
    allowed.push(...methods);
  }
  return allowed.length > 0 ? { kind: "wrong-method", allowed } : { kind: "unknown" };
}

const DENIED = { Message: "Authorization has been denied for this request." };

/**
 * Returns whether the key is one of the account's. Every key may use every operation, because the permissions of
 * roles are not documented.
 */
export function isKnownKey(context: EmulatorContext, key: string | undefined): boolean {
  return key !== undefined && context.resources.apiKeys.some((known) => known.Key === key);
}

/** Returns how an area of the platform answers a missing or wrong key. */
export function refuseKey(
  context: EmulatorContext,
  operation: Operation,
  params: Readonly<Record<string, string>>,
): Reply {
  const denied = () => json(401, DENIED);
  const container = () =>
    containerProblem(401, "The access key is missing or not valid.", params["appId"] ?? "");
  const minimal = () => minimalError(401);
  const bare = () => problem(401);
  const refusals: Record<Operation, () => Reply> = {
    "list-api-keys": () => json(Number(context.switches.apiKeyRefusal), DENIED),
    "set-hostname-key-type": denied,
    "check-dns-zone": denied,
    "add-container": container,
    "update-application": container,
    "delete-volume-instances": container,
    "recommend-rule": minimal,
    "rule-metrics": minimal,
    "search-event-logs": bare,
    "export-event-logs": bare,
    "list-event-logs": bare,
  };
  return refusals[operation]();
}
