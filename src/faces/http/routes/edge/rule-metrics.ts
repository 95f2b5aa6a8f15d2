import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { WafRuleMetricsResponse } from "#adapters/edge/contract/rules.ts";
import { type RuleDay, readRuleDays } from "#db/detection/trends.ts";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import { sendBareProblem, sendJson } from "./platform-answer.ts";
import type { PlatformDeps } from "./platform-deps.ts";
import { PLATFORM_TAGS, ruleRefusals, ZONE_PARAM } from "./platform-schemas.ts";
import { isServedZone, readParam, readZoneId, unknownZoneBlock } from "./read-zone.ts";

const OVERVIEW_DAYS = 28;
const RULE_ID = /^[A-Za-z0-9_-]{1,64}$/;

const schema = {
  tags: PLATFORM_TAGS,
  summary: "Count the events of one rule over 28 days",
  params: z.object({ ...ZONE_PARAM, ruleId: z.string() }),
  response: {
    200: WafRuleMetricsResponse,
    ...ruleRefusals(WafRuleMetricsResponse.extend({ data: z.null() })),
  },
};

type Counts = Omit<RuleDay, "startsAt">;

/**
 * Returns a rule's counters (platform API spec 4.11): in total, and for each of the last 28 UTC days, oldest first.
 * Days without events are included. Longwatch counts its own copy, so days before the first copied event have zeros.
 */
export function addRuleMetrics(app: FastifyInstance, deps: PlatformDeps): void {
  const config = { access: { scope: "read" }, errorForm: "status-code" } as const;
  const url = "/shield/metrics/shield-zone/:shieldZoneId/waf-rule/:ruleId";
  app.get(url, { config, schema }, async (request, reply) => {
    const zoneId = readZoneId(request, reply);
    if (zoneId === null) return reply;
    const ruleId = readParam(request, "ruleId");
    if (!RULE_ID.test(ruleId)) return sendBareProblem(reply, 400);
    if (!(await isServedZone(deps, request, zoneId)))
      return sendJson(reply, 202, { data: null, error: unknownZoneBlock() });
    const today = startOfDay(deps.clock());
    const window = { from: today - (OVERVIEW_DAYS - 1) * DAY_MS, to: today + DAY_MS };
    const days = await readRuleDays(deps.db, { zoneId, ruleId }, window);
    return sendJson(reply, 200, { data: toMetrics(days, window.from), error: null });
  });
}

function toMetrics(days: readonly RuleDay[], from: number) {
  const found = new Map(days.map((day) => [day.startsAt, day]));
  const overview = Array.from({ length: OVERVIEW_DAYS }, (_, index) => {
    const startsAt = from + index * DAY_MS;
    return [toDayKey(startsAt), toCounters(found.has(startsAt) ? [found.get(startsAt) as Counts] : [])];
  });
  return { ...toCounters(days), overviewPastTwentyEightDays: Object.fromEntries(overview) as object };
}

/** Returns the day as `dd-MM-yyyy`, unlike the days of the list. */
function toDayKey(at: number): string {
  return toDay(at).split("-").reverse().join("-");
}

function toCounters(days: readonly Counts[]) {
  const sum = (name: keyof Counts) => days.reduce((total, day) => total + day[name], 0);
  return {
    totalTriggers: sum("total"),
    blockedRequests: sum("blocked"),
    loggedRequests: sum("logged"),
    challengedRequests: sum("challenged"),
  };
}
