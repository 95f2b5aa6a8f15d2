import { AiRecommendationResponse } from "../edge/contract/ai-recommendation.ts";
import { ApiKeyList, ApiKeyListQuery } from "../edge/contract/api-key-list.ts";
import { EventLogListResponse } from "../edge/contract/event-log-list.ts";
import { EventLogsExportRequest } from "../edge/contract/event-logs-export.ts";
import { EventLogsSearchRequest, EventLogsSearchResponse } from "../edge/contract/event-logs-search.ts";
import { WafRuleMetricsResponse } from "../edge/contract/waf-rule-metrics.ts";
import type { RouteDocs } from "./route-docs.ts";

const tag = "Archive (the platform's API)";
const SPAN = { from: 1_795_219_200_000, to: 1_795_262_400_000 };

/** By method and the route's fixed parts; how the parameters of the platform's paths are named is their routes' business. */
const OPERATIONS: readonly (readonly [string, RegExp, RouteDocs])[] = [
  [
    "POST",
    /^\/shield\/event-logs\/:\w+\/search$/,
    {
      tag,
      summary: "Search events, as far back as they are kept",
      body: EventLogsSearchRequest,
      example: { ...SPAN, groupBy: ["ruleId"], buckets: 24 },
      response: EventLogsSearchResponse,
    },
  ],
  [
    "POST",
    /^\/shield\/event-logs\/:\w+\/export$/,
    {
      tag,
      summary: "Export events as CSV, or as NDJSON where that is accepted",
      body: EventLogsExportRequest,
      example: { ...SPAN, filters: [{ field: "ruleId", op: "eq", value: ["942100"] }] },
      responseType: "text/csv",
    },
  ],
  [
    "GET",
    /^\/shield\/event-logs\/:\w+\/:\w+/,
    { tag, summary: "List a day's events as they were received, by pages", response: EventLogListResponse },
  ],
  [
    "GET",
    /^\/shield\/metrics\/shield-zone\/:\w+\/waf-rule\/:\w+$/,
    { tag, summary: "Count a rule's events of 28 days", response: WafRuleMetricsResponse },
  ],
  [
    "GET",
    /^\/shield\/waf\/rules\/review-triggered\/ai-recommendation\//,
    { tag, summary: "The platform AI's recommendation for a rule", response: AiRecommendationResponse },
  ],
  [
    "GET",
    /^\/apikey$/,
    { tag, summary: "List Longwatch's own keys, masked", query: ApiKeyListQuery, response: ApiKeyList },
  ],
  ["GET", /^\/livez$/, { tag: "Service", summary: "Whether this process is alive" }],
  ["GET", /^\/readyz$/, { tag: "Service", summary: "Whether it can do its work; 503 where it cannot" }],
  [
    "GET",
    /^\/metrics$/,
    { tag: "Service", summary: "Metrics in the Prometheus text format", responseType: "text/plain" },
  ],
];

/**
 * What there is to say of routes that have no schemas of their own; the bodies at the platform's paths are those of its
 * contract.
 */
export function docsOfRoute(method: string, url: string): RouteDocs | null {
  return OPERATIONS.find(([verb, path]) => verb === method && path.test(url))?.[2] ?? null;
}
