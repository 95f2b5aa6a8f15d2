/** The platform's routes of a rule: advice and daily counts. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { maskText } from "#archive/rules/mask.ts";
import { readStoredAdvice, type StoredAdvice } from "#db/alerts/advice.ts";
import { type RuleDay, readRuleDays } from "#db/detection/trends.ts";
import { DAY_MS } from "#lib/units.ts";
import { ANSWER_KEEPS_MS, ASKING, MODEL_FAILED, NO_RECOMMENDATION } from "#model/advice.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import { AiRecommendationResponse, WafRuleMetricsResponse } from "#platform/contract/rules.ts";
import {
  type AskedAdvice,
  failureBlock,
  isServedZone,
  PLATFORM_TAGS,
  type PlatformDeps,
  readParam,
  readZoneId,
  ruleRefusals,
  sendBareProblem,
  sendJson,
  unknownZoneBlock,
  ZONE_PARAM,
} from "./platform.ts";

/** Longer than any known rule id. */
const MAX_RULE_ID_CHARS = 200;
/** The platform's error for a rule that it does not have. */
const UNKNOWN_RULE = "not_found_or_unauthorised_access.waf_rule";

const adviceSchema = {
  tags: PLATFORM_TAGS,
  summary: "Show the recommendation of the platform's AI for a rule",
  params: z.object({ ...ZONE_PARAM, ruleId: z.string() }),
  response: { 200: AiRecommendationResponse, ...ruleRefusals(AiRecommendationResponse) },
};

/**
 * Answers with the recommendation for a triggered rule (platform API spec 4.10). A recent stored recommendation is
 * returned. Otherwise the platform is asked, if the key may act and the budget allows it; if not, an old recommendation
 * is returned. The text comes from a language model and is hostile.
 */
export function addRecommendRule(app: FastifyInstance, deps: PlatformDeps): void {
  const config = { access: { scope: "read" }, errorForm: "status-code" } as const;
  const url = "/shield/waf/rules/review-triggered/ai-recommendation/:shieldZoneId/:ruleId";
  app.get(url, { config, schema: adviceSchema }, async (request, reply) => {
    const zoneId = readZoneId(request, reply);
    if (zoneId === null) return reply;
    const ruleId = readParam(request, "ruleId");
    if (ruleId === "") return sendBareProblem(reply, 404);
    if (!(await isServedZone(deps, request, zoneId))) return sendUnknownZone(reply);
    if (!canBeRule(ruleId)) return sendFailure(reply, { zoneId, ruleId }, UNKNOWN_RULE);
    return recommend(deps, request, reply, { zoneId, ruleId });
  });
}

/** Returns whether a rule can have this id. The platform is not asked about an impossible id. */
function canBeRule(ruleId: string): boolean {
  return ruleId.length <= MAX_RULE_ID_CHARS && !ruleId.includes("\0") && !/^\.{1,2}$/.test(ruleId);
}

type Advice = NonNullable<StoredAdvice["answer"]>;

interface Rule {
  readonly zoneId: number;
  readonly ruleId: string;
}

async function recommend(deps: PlatformDeps, request: FastifyRequest, reply: FastifyReply, rule: Rule) {
  const stored = await readStoredAdvice(deps.db, rule, ASKING);
  const { answer } = stored;
  const isRecent = answer !== null && answer.askedAt >= deps.clock() - ANSWER_KEEPS_MS;
  const isMasked = request.caller?.masked ?? true;
  const show = ({ text, askedAt }: Advice) =>
    sendAnswer(reply, rule, { text: isMasked ? maskText(text) : text, askedAt });
  if (isRecent) return show(answer);
  const asked = await ask(deps, request, rule);
  if (asked?.kind === "answered") return show({ text: asked.text, askedAt: deps.clock() });
  if (answer !== null) return show(answer);
  return sendFailure(reply, rule, asked?.kind === "failed" ? asked.errorKey : stored.errorKey);
}

/** Returns null if the platform is not asked: the key may only read, or asking is switched off. */
async function ask(deps: PlatformDeps, request: FastifyRequest, rule: Rule): Promise<AskedAdvice | null> {
  if (deps.askAdvice === null || request.caller?.scopes.has("act") !== true) return null;
  return deps.askAdvice(rule);
}

function sendAnswer(reply: FastifyReply, { zoneId, ruleId }: Rule, { text, askedAt }: Advice) {
  void reply.header("x-longwatch-asked-at", new Date(askedAt).toISOString());
  const about = { shieldZoneId: zoneId, ruleId, success: true };
  return sendJson(reply, 200, { ...about, recommendation: text, errorResponse: null });
}

function sendFailure(reply: FastifyReply, { zoneId, ruleId }: Rule, storedKey: string | null) {
  const { status, success, errorKey, message } = wordAdviceFailure(storedKey);
  const about = { shieldZoneId: zoneId, ruleId, success };
  const errorResponse = errorKey === null ? null : failureBlock(status, errorKey, message);
  return sendJson(reply, status, { ...about, recommendation: null, errorResponse });
}

function sendUnknownZone(reply: FastifyReply) {
  const about = { shieldZoneId: 0, ruleId: null, success: false, recommendation: null };
  return sendJson(reply, 202, { ...about, errorResponse: unknownZoneBlock() });
}

const OVERVIEW_DAYS = 28;
const RULE_ID = /^[A-Za-z0-9_-]{1,64}$/;

const metricsSchema = {
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
  app.get(url, { config, schema: metricsSchema }, async (request, reply) => {
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

interface AdviceFailure {
  readonly status: number;
  readonly success: boolean;
  /** Null if the platform would send none. */
  readonly errorKey: string | null;
  readonly message: string;
}

const OWN_KEY = /^[A-Z]/;
/** Matches the platform's keys that come with HTTP 200. The others come with 202. */
const SENT_AS_SUCCESS = /^not_enough_data\./;

/**
 * Returns a failed or missing ask in the platform's form. `storedKey` is the platform's own key, one of this
 * service's in capitals, or null if the platform was never asked.
 */
function wordAdviceFailure(storedKey: string | null): AdviceFailure {
  if (storedKey === null) {
    const message = "No recommendation for this rule is stored, and none can be asked for now.";
    return { status: 202, success: false, errorKey: "not_found.ai_recommendation", message };
  }
  // The platform had no recommendation, or its model failed. Both come without a key.
  if (storedKey === NO_RECOMMENDATION || storedKey === MODEL_FAILED)
    return { status: 200, success: storedKey === NO_RECOMMENDATION, errorKey: null, message: "" };
  if (OWN_KEY.test(storedKey)) {
    const message = "The platform could not be asked for a recommendation. Ask again later.";
    return { status: 202, success: false, errorKey: "not_available.ai_recommendation", message };
  }
  const status = SENT_AS_SUCCESS.test(storedKey) ? 200 : 202;
  return { status, success: false, errorKey: storedKey, message: worded(storedKey) };
}

function worded(key: string): string {
  if (key.startsWith("limit_reached.")) return "The limit of AI recommendations of this plan is reached.";
  if (key.startsWith("not_enough_data.")) return "There is not enough data for a recommendation.";
  if (/^not_found.*\.waf_rule$/.test(key))
    return "The WAF rule was not found, or access to it is not authorised.";
  return "The platform gave no recommendation for this rule.";
}
