/** The routes of a rule: advice and daily counts. */
import { setTimeout as delay } from "node:timers/promises";
import type { Call, EmulatorContext } from "../emulator-context.ts";
import { failureBlock, json, minimalError, type Reply } from "../reply.ts";
import type { ActionCounts } from "../rule-days.ts";
import type { Draft } from "../traffic/draft.ts";
import type { ZoneStore } from "../zone-store.ts";
import { findZone, successBlock, unknownZoneBlock } from "./bodies.ts";

/** Returns the newest event of a rule that is visible now, and the number of visible events. */
function findRule(
  store: ZoneStore,
  ruleId: string,
  nowMs: number,
): { newest: Draft; events: number } | undefined {
  const columns = store.columns();
  const codes = columns.codesOf("ruleId");
  const wanted = columns.dictionaryOf("ruleId").find(ruleId);
  let events = 0;
  let newest = -1;
  for (let row = 0; row < columns.length(); row++) {
    if (codes[row] !== wanted || columns.visibleAt(row) > nowMs) continue;
    events++;
    newest = row;
  }
  return newest < 0 ? undefined : { newest: store.draft(newest), events };
}

/** Returns text like a model's answer that quotes the event unescaped, as a model would. */
function write(draft: Draft, events: number): string {
  return [
    `Rule ${draft.rule.ruleId} (${draft.rule.message}) was triggered ${events} times in the last 72 hours.`,
    "",
    `The most recent request came from ${draft.ip} (AS${draft.asn}, ${draft.country}) and matched:`,
    `    ${draft.match}`,
    `Requested URL: ${draft.url}`,
    `User agent: ${draft.ua.slice(0, 300)}`,
    "",
    "**Recommendation:** keep the rule enabled. The matched text is typical for automated probing and has no place in",
    `ordinary requests to ${draft.host}. If a legitimate client is affected, exclude its path instead of disabling the rule.`,
    "Review action: Ignore.",
  ].join("\n");
}

function failure(id: number, ruleId: string, status: number, errorKey: string, message: string): Reply {
  const errorResponse = failureBlock(status, errorKey, message);
  return json(status, { shieldZoneId: id, ruleId, success: false, recommendation: null, errorResponse });
}

function answer(context: EmulatorContext, id: number, ruleId: string, text: string): Reply {
  const success = (recommendation: string | null) =>
    json(200, {
      shieldZoneId: id,
      ruleId,
      success: true,
      recommendation,
      ...successBlock(context, "errorResponse"),
    });
  const answers: Record<typeof context.switches.advice, () => Reply> = {
    ok: () => success(text),
    "null-text": () => success(null),
    "empty-text": () => success(""),
    "limit-reached": () =>
      failure(
        id,
        ruleId,
        202,
        "limit_reached.ai_recommendation",
        "The limit of AI recommendations of this plan is reached.",
      ),
    "not-enough-data": () =>
      failure(
        id,
        ruleId,
        200,
        "not_enough_data.ai_recommendation",
        "There is not enough data for a recommendation.",
      ),
    // Without message and key, so that only the outer `success` reports the failure.
    "model-failure": () =>
      json(200, { shieldZoneId: id, ruleId, success: false, recommendation: null, errorResponse: null }),
  };
  return answers[context.switches.advice]();
}

/**
 * Returns the AI recommendation for a triggered rule (platform API spec 4.10). A switch makes it slow. Its text is
 * hostile.
 */
export async function recommendRule(context: EmulatorContext, call: Call): Promise<Reply> {
  const zone = findZone(context, call);
  if ("refusal" in zone) return minimalError(400);
  const ruleId = call.params["ruleId"] ?? "";
  if (ruleId === "") return minimalError(404);
  if (context.switches.adviceLatencyMs > 0)
    await delay(context.switches.adviceLatencyMs, undefined, { signal: call.signal });
  if (zone.store === undefined) {
    return json(202, {
      shieldZoneId: 0,
      ruleId: null,
      success: false,
      recommendation: null,
      errorResponse: unknownZoneBlock(),
    });
  }
  const found = findRule(zone.store, ruleId, context.now());
  if (found === undefined) {
    const message = "The WAF rule was not found, or access to it is not authorised.";
    return failure(zone.id, ruleId, 202, "not_found_or_unauthorised_access.waf_rule", message);
  }
  return answer(context, zone.id, ruleId, write(found.newest, found.events));
}

const OVERVIEW_DAYS = 28;

function dayKey(dayMs: number, form: "dd-MM-yyyy" | "iso"): string {
  const iso = new Date(dayMs).toISOString();
  if (form === "iso") return iso.replace(".000Z", "Z");
  return `${iso.slice(8, 10)}-${iso.slice(5, 7)}-${iso.slice(0, 4)}`;
}

function counters(counts: ActionCounts) {
  return {
    totalTriggers: counts.block + counts.log + counts.challenge,
    blockedRequests: counts.block,
    loggedRequests: counts.log,
    challengedRequests: counts.challenge,
  };
}

/**
 * Returns a rule's counters, in total and for each of the last 28 UTC days (platform API spec 4.11). A rule without
 * events has zeros.
 */
export async function ruleMetrics(context: EmulatorContext, call: Call): Promise<Reply> {
  const zone = findZone(context, call);
  if ("refusal" in zone) return minimalError(400);
  const ruleId = call.params["ruleId"] ?? "";
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(ruleId)) return minimalError(400);
  if (zone.store === undefined) return json(202, { data: null, error: unknownZoneBlock() });
  const days = await context.ruleDays.count(zone.store, {
    ruleId,
    days: OVERVIEW_DAYS,
    nowMs: context.now(),
  });
  const sum = (action: keyof ActionCounts) => days.reduce((total, day) => total + day.counts[action], 0);
  const overview = days.map(({ dayMs, counts }) => [
    dayKey(dayMs, context.switches.metricDays),
    counters(counts),
  ]);
  return json(200, {
    data: {
      ...counters({ block: sum("block"), log: sum("log"), challenge: sum("challenge") }),
      overviewPastTwentyEightDays: Object.fromEntries(overview),
    },
    ...successBlock(context, "error"),
  });
}
