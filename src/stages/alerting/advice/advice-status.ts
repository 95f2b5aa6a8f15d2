import {
  type AdviceRow,
  type AdvisedSpike,
  ANSWER_KEEPS_MS,
  CLAIM_MS,
  FIRST_BACK_OFF_MS,
  LONGEST_BACK_OFF_MS,
} from "#model/advice.ts";
import type { AdviceState } from "#model/kinds.ts";
import { type AdviceOutcome, classifyAdvice } from "./classify-advice.ts";

/** The status of a spike's advice. `isDue`: the platform should be asked now, if the budget allows. */
export interface AdviceStatus {
  readonly state: AdviceState;
  /** Reason why there is no advice, in words; null unless `unavailable`. May quote the platform's key. */
  readonly reason: string | null;
  /** When the ask whose text is to be shown was made; null unless `present`. */
  readonly askedAtMs: number | null;
  readonly isDue: boolean;
}

/** The status for the sources of a zone: the platform advises on rules only. */
export const NO_ADVICE: AdviceStatus = unavailable("the platform advises on rules only", false);

interface Ask extends AdviceRow {
  readonly outcome: AdviceOutcome;
}

/**
 * Decides from the known asks. One answer serves the whole episode, even if it was given shortly before the episode
 * opened, so a rule is asked about once per episode unless asking failed. `rows` may hold other rules and zones, in any
 * order.
 */
export function adviceStatus(spike: AdvisedSpike, rows: readonly AdviceRow[], nowMs: number): AdviceStatus {
  const asks = rows
    .map((row): Ask => ({ ...row, outcome: classifyAdvice(row) }))
    .sort((a, b) => b.askedAtMs - a.askedAtMs);
  const own = asks.filter((ask) => isOfRule(ask, spike));
  const settled = own.filter((ask) => ask.askedAtMs >= spike.openedAtMs - ANSWER_KEEPS_MS);
  const answer = settled.find((ask) => ask.outcome.kind === "answered");
  if (answer !== undefined)
    return { state: "present", reason: null, askedAtMs: answer.askedAtMs, isDue: false };
  if (settled.some((ask) => ask.outcome.kind === "nothing"))
    return unavailable("the platform has no recommendation for this rule", false);
  return unanswered(spike, asks, own, nowMs);
}

function unanswered(
  spike: AdvisedSpike,
  asks: readonly Ask[],
  own: readonly Ask[],
  nowMs: number,
): AdviceStatus {
  const inForce = asks.filter((ask) => isInForce(ask, spike, nowMs));
  const refusal = inForce.find((ask) => ask.outcome.kind === "refused");
  if (refusal?.outcome.kind === "refused") return unavailable(refusal.outcome.reason, false);
  const isDue = inForce.length === 0 && isRetryDue(own, nowMs);
  const last = own[0]?.outcome;
  return last?.kind === "failed"
    ? unavailable(`${last.reason}; Longwatch will ask again`, isDue)
    : { state: "pending", reason: null, askedAtMs: null, isDue };
}

/** Whether a refusal or pause still applies to this spike. */
function isInForce(ask: Ask, spike: AdvisedSpike, nowMs: number): boolean {
  const { outcome } = ask;
  if (outcome.kind !== "refused" && outcome.kind !== "paused") return false;
  if (ask.askedAtMs + outcome.keepsMs <= nowMs) return false;
  if (outcome.scope === "account") return true;
  return outcome.scope === "zone" ? ask.zoneId === spike.zoneId : isOfRule(ask, spike);
}

/** Back-off by the failures since the last ask that did not fail; an ask without an answer counts as one. */
function isRetryDue(own: readonly Ask[], nowMs: number): boolean {
  const last = own[0];
  if (last === undefined) return true;
  const sound = own.findIndex((ask) => ask.outcome.kind !== "failed" && ask.outcome.kind !== "asking");
  const failures = sound === -1 ? own.length : sound;
  if (failures === 0) return true;
  const backOffMs = Math.min(FIRST_BACK_OFF_MS * 2 ** (failures - 1), LONGEST_BACK_OFF_MS);
  const pauseMs = last.outcome.kind === "asking" ? Math.max(backOffMs, CLAIM_MS) : backOffMs;
  return last.askedAtMs + pauseMs <= nowMs;
}

function isOfRule(ask: AdviceRow, spike: AdvisedSpike): boolean {
  return ask.zoneId === spike.zoneId && ask.ruleId === spike.ruleId;
}

function unavailable(reason: string, isDue: boolean): AdviceStatus {
  return { state: "unavailable", reason, askedAtMs: null, isDue };
}
