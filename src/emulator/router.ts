import type { Call, EmulatorContext } from "./emulator-context.ts";
import type { Operation } from "./operations.ts";
import type { Reply } from "./reply.ts";
import { addContainer } from "./routes/add-container.ts";
import { checkDnsZone } from "./routes/check-dns-zone.ts";
import { deleteVolumeInstances } from "./routes/delete-volume-instances.ts";
import { exportEventLogs } from "./routes/export-event-logs.ts";
import { listApiKeys } from "./routes/list-api-keys.ts";
import { listEventLogs } from "./routes/list-event-logs.ts";
import { recommendRule } from "./routes/recommend-rule.ts";
import { ruleMetrics } from "./routes/rule-metrics.ts";
import { searchEventLogs } from "./routes/search-event-logs.ts";
import { setHostnameKeyType } from "./routes/set-hostname-key-type.ts";
import { updateApplication } from "./routes/update-application.ts";

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
