import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { AiRecommendationResponse } from "#adapters/edge/contract/rules.ts";
import { readStoredAdvice, type StoredAdvice } from "#db/alerting/advice.ts";
import { ANSWER_KEEPS_MS, ASKING } from "#model/advice.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";
import { wordAdviceFailure } from "#stages/archive/word-advice-failure.ts";
import { failureBlock, sendBareProblem, sendJson } from "./platform-answer.ts";
import type { AskedAdvice, PlatformDeps } from "./platform-deps.ts";
import { PLATFORM_TAGS, ruleRefusals, ZONE_PARAM } from "./platform-schemas.ts";
import { isServedZone, readParam, readZoneId, unknownZoneBlock } from "./read-zone.ts";

/** Longer than any known rule id. */
const MAX_RULE_ID_CHARS = 200;
/** The platform's error for a rule that it does not have. */
const UNKNOWN_RULE = "not_found_or_unauthorised_access.waf_rule";

const schema = {
  tags: PLATFORM_TAGS,
  summary: "Show the recommendation of the platform's AI for a rule",
  params: z.object({ ...ZONE_PARAM, ruleId: z.string() }),
  response: { 200: AiRecommendationResponse, ...ruleRefusals(AiRecommendationResponse) },
};

/**
 * Answers with the recommendation for a triggered rule (platform API spec 4.10). A fresh stored recommendation is
 * returned. Otherwise the platform is asked, if the key may act and the budget allows it; if not, an old recommendation
 * is returned. The text comes from a language model and is hostile.
 */
export function addRecommendRule(app: FastifyInstance, deps: PlatformDeps): void {
  const config = { access: { scope: "read" }, errorForm: "status-code" } as const;
  const url = "/shield/waf/rules/review-triggered/ai-recommendation/:shieldZoneId/:ruleId";
  app.get(url, { config, schema }, async (request, reply) => {
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
  const isFresh = answer !== null && answer.askedAt >= deps.clock() - ANSWER_KEEPS_MS;
  const isMasked = request.caller?.masked ?? true;
  const show = ({ text, askedAt }: Advice) =>
    sendAnswer(reply, rule, { text: isMasked ? maskText(text) : text, askedAt });
  if (isFresh) return show(answer);
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
