import { z } from "zod";
import { AiRecommendationResponse } from "../../edge/contract/ai-recommendation.ts";
import { ApiKeyList, ApiKeyListQuery } from "../../edge/contract/api-key-list.ts";
import { LegacyError, MinimalError, ProblemDetails } from "../../edge/contract/errors.ts";
import { EventLogListResponse } from "../../edge/contract/event-log-list.ts";
import { EventLogsExportRequest } from "../../edge/contract/event-logs-export.ts";
import { EventLogsSearchRequest, EventLogsSearchResponse } from "../../edge/contract/event-logs-search.ts";
import { GenericRequestResponse } from "../../edge/contract/generic-request-response.ts";
import { WafRuleMetricsResponse } from "../../edge/contract/waf-rule-metrics.ts";
import type { RouteDocs } from "./route-docs.ts";

const tag = "Archive (the platform's API)";
/** What the platform does not say of its own. */
const LIMITS =
  "At most 50 filters, 1,000 values of one, 10,000 characters in a text, 256 KiB in all. `from` and `to` reach back as far as events are kept.";
const SPAN = { from: 1_795_219_200_000, to: 1_795_262_400_000 };

const JSON_TYPE = "application/json";
const PROBLEM_TYPE = "application/problem+json";
/** A failure has null in the place of what was asked for. */
const FailedList = EventLogListResponse.extend({ logs: z.null() });
const FailedMetrics = WafRuleMetricsResponse.extend({ data: z.null() });

const bare = { [PROBLEM_TYPE]: ProblemDetails };
const minimal = { [JSON_TYPE]: MinimalError };
const message = { [JSON_TYPE]: z.object({ Message: z.string() }) };

/** What the operations answer beside 200: each area of the platform has its own form (platform API spec 2.13). */
const ofSearch = (failed: z.ZodType) => ({
  "202": { [JSON_TYPE]: failed },
  ...forAll(["400", "401", "403", "413", "415", "429", "503"], bare),
});
const ofList = {
  "202": { [JSON_TYPE]: FailedList },
  // With an error block it is about the day, without one about the key.
  "401": { ...bare, [JSON_TYPE]: FailedList },
  ...forAll(["400", "403", "429", "503"], bare),
};
const ofRule = (failed: z.ZodType) => ({
  "202": { [JSON_TYPE]: failed },
  ...forAll(["400", "401", "403", "429", "503"], minimal),
});
const ofKeys = { "400": { [JSON_TYPE]: LegacyError }, ...forAll(["401", "403", "429", "503"], message) };

function forAll<Body>(statuses: readonly string[], body: Body): Record<string, Body> {
  return Object.fromEntries(statuses.map((status) => [status, body]));
}

/** By method and the route's fixed parts; how the parameters of the platform's paths are named is their routes' business. */
const OPERATIONS: readonly (readonly [string, RegExp, RouteDocs])[] = [
  [
    "POST",
    /^\/shield\/event-logs\/:\w+\/search$/,
    {
      tag,
      summary: "Search events, as far back as they are kept",
      description: `${LIMITS} The header x-longwatch-source says whether counts or events answered.`,
      body: EventLogsSearchRequest,
      example: { ...SPAN, groupBy: ["ruleId"], buckets: 24 },
      response: EventLogsSearchResponse,
      refusals: ofSearch(EventLogsSearchResponse),
    },
  ],
  [
    "POST",
    /^\/shield\/event-logs\/:\w+\/export$/,
    {
      tag,
      summary: "Export events as CSV, or as NDJSON where that is accepted",
      description: `${LIMITS} A cell that a spreadsheet would run begins with an apostrophe; NDJSON has the texts as they are.`,
      body: EventLogsExportRequest,
      example: { ...SPAN, filters: [{ field: "ruleId", op: "eq", value: ["942100"] }] },
      responseType: "text/csv",
      refusals: ofSearch(GenericRequestResponse),
    },
  ],
  [
    "GET",
    /^\/shield\/event-logs\/:\w+\/:\w+/,
    {
      tag,
      summary: "List a day's events as they were received, by pages",
      response: EventLogListResponse,
      refusals: ofList,
    },
  ],
  [
    "GET",
    /^\/shield\/metrics\/shield-zone\/:\w+\/waf-rule\/:\w+$/,
    {
      tag,
      summary: "Count a rule's events of 28 days",
      response: WafRuleMetricsResponse,
      refusals: ofRule(FailedMetrics),
    },
  ],
  [
    "GET",
    /^\/shield\/waf\/rules\/review-triggered\/ai-recommendation\//,
    {
      tag,
      summary: "The platform AI's recommendation for a rule",
      response: AiRecommendationResponse,
      refusals: ofRule(AiRecommendationResponse),
    },
  ],
  [
    "GET",
    /^\/apikey$/,
    {
      tag,
      summary: "List Longwatch's own keys, masked",
      query: ApiKeyListQuery,
      response: ApiKeyList,
      refusals: ofKeys,
    },
  ],
  ["GET", /^\/livez$/, { tag: "Service", summary: "Whether this process is alive" }],
  ["GET", /^\/readyz$/, { tag: "Service", summary: "Whether it can do its work; 503 where it cannot" }],
  [
    "GET",
    /^\/metrics$/,
    {
      tag: "Service",
      summary: "Metrics in the Prometheus text format",
      description:
        "The key may also come as `Authorization: Bearer`, for scrapers that send no other header.",
      responseType: "text/plain",
    },
  ],
];

/**
 * What there is to say of routes that have no schemas of their own; the bodies at the platform's paths are those of its
 * contract.
 */
export function docsOfRoute(method: string, url: string): RouteDocs | null {
  return OPERATIONS.find(([verb, path]) => verb === method && path.test(url))?.[2] ?? null;
}
