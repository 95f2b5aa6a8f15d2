/** The state of the platform's advice on a spike, and what an answer is worth. */

import { HOUR_MS } from "#lib/units.ts";
import {
  type AdviceRow,
  type AdvisedSpike,
  ANSWER_KEEPS_MS,
  ASKING,
  CLAIM_MS,
  CREDENTIALS_PAUSE_MS,
  DEFAULT_WAIT_MS,
  FIRST_BACK_OFF_MS,
  LONGEST_BACK_OFF_MS,
  MODEL_FAILED,
  NO_RECOMMENDATION,
  REFUSAL_KEEPS_MS,
  REJECTION_KEEPS_MS,
} from "#model/advice.ts";
import { type AdviceState, SEVERITIES, type Severity } from "#model/kinds.ts";

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

/**
 * The outcome of an ask. `answered` and `nothing` settle an episode. `refused` holds for a while and for a scope.
 * `paused` says nothing about the rule, only that the platform may not be asked now. `failed` is tried again with
 * back-off.
 */
type AdviceOutcome =
  | { readonly kind: "answered" }
  | { readonly kind: "nothing" }
  | { readonly kind: "asking" }
  | {
      readonly kind: "refused" | "paused";
      /** The rules that the answer also applies to: a plan applies to a zone, a key or a rate limit to the account. */
      readonly scope: "rule" | "zone" | "account";
      readonly keepsMs: number;
      readonly reason: string;
    }
  | { readonly kind: "failed"; readonly reason: string };

const PLAN_KEY = /^(?:invalid_plan_type|limit_reached|feature_not_available)/i;
const UNKNOWN_ZONE_KEY = /^not_found.*\.shieldzone$/i;
const UNKNOWN_RULE_KEY = /^not_found|\.not_found$/i;
const OWN_KEY = /^(EDGE_[A-Z_]+)(?:\.(\d+))?$/;
const TRANSIENT = new Set(["EDGE_UNAVAILABLE", "EDGE_TIMEOUT", "EDGE_NETWORK", "EDGE_MALFORMED"]);

function refused(scope: "rule" | "zone" | "account", keepsMs: number, reason: string): AdviceOutcome {
  return { kind: "refused", scope, keepsMs, reason };
}

function classifyOwnKey(code: string, waitMs: number | null): AdviceOutcome | null {
  if (code === "EDGE_RATE_LIMITED" || waitMs !== null) {
    const keepsMs = waitMs ?? DEFAULT_WAIT_MS;
    return { kind: "paused", scope: "account", keepsMs, reason: "the platform asked Longwatch to wait" };
  }
  if (code === "EDGE_UNAUTHORIZED" || code === "EDGE_FORBIDDEN")
    return refused("account", CREDENTIALS_PAUSE_MS, "the platform refused the access key");
  if (code === "EDGE_PLAN")
    return refused("zone", REFUSAL_KEEPS_MS, "the zone's plan does not include recommendations");
  if (code === "EDGE_NOT_FOUND")
    return refused("rule", REFUSAL_KEEPS_MS, "the platform does not know the rule");
  return TRANSIENT.has(code) ? { kind: "failed", reason: `the platform did not answer (${code})` } : null;
}

/** Reads a stored ask; upstream facts on the recommendation's failures. A key of unknown meaning is a rejection. */
export function classifyAdvice(row: Pick<AdviceRow, "success" | "errorKey">): AdviceOutcome {
  if (row.success) return { kind: "answered" };
  const key = row.errorKey ?? MODEL_FAILED;
  if (key === NO_RECOMMENDATION) return { kind: "nothing" };
  if (key === ASKING) return { kind: "asking" };
  if (key === MODEL_FAILED) return { kind: "failed", reason: "the platform's AI model failed" };
  const own = OWN_KEY.exec(key);
  const outcome = own === null ? null : classifyOwnKey(own[1] ?? "", own[2] ? Number(own[2]) : null);
  if (outcome !== null) return outcome;
  if (PLAN_KEY.test(key))
    return refused("zone", REFUSAL_KEEPS_MS, `the zone's plan does not allow this recommendation (${key})`);
  if (UNKNOWN_ZONE_KEY.test(key))
    return refused("zone", REFUSAL_KEEPS_MS, `the platform does not know the zone (${key})`);
  if (UNKNOWN_RULE_KEY.test(key))
    return refused("rule", REFUSAL_KEEPS_MS, `the platform does not know the rule (${key})`);
  return refused("rule", REJECTION_KEEPS_MS, `the platform rejected the request (${key})`);
}

export interface OpenSpike extends AdvisedSpike {
  readonly id: number;
  readonly severity: Severity;
}

interface AskPlan<Spike> {
  readonly asks: readonly Spike[];
  /** Number of spikes that are due, but beyond the budget of this hour. */
  readonly overBudget: number;
}

/**
 * Returns the open spikes to ask about now: at most `atMost`, and no more asks in any hour than the budget, which
 * failed and lost asks use as well. The most severe come first, then the newest.
 */
export function planAsks<Spike extends OpenSpike>(input: {
  readonly spikes: readonly Spike[];
  readonly rows: readonly AdviceRow[];
  readonly nowMs: number;
  readonly budgetPerHour: number;
  readonly atMost: number;
}): AskPlan<Spike> {
  const { spikes, rows, nowMs, budgetPerHour, atMost } = input;
  const spent = rows.filter((row) => row.askedAtMs > nowMs - HOUR_MS).length;
  const left = Math.max(budgetPerHour - spent, 0);
  const due = spikes
    .filter((spike) => adviceStatus(spike, rows, nowMs).isDue)
    .sort((a, b) => rank(b.severity) - rank(a.severity) || b.openedAtMs - a.openedAtMs);
  return { asks: due.slice(0, Math.min(left, atMost)), overBudget: Math.max(due.length - left, 0) };
}

function rank(severity: Severity): number {
  return SEVERITIES.indexOf(severity);
}

/** The result of an ask, as the database stores it. */
export interface AdviceResult {
  readonly success: boolean;
  readonly text: string | null;
  readonly errorKey: string | null;
}

const MAX_TEXT_CODE_POINTS = 20_000;
/** Matches any character except control, format and white space characters; a text without one is empty. */
const VISIBLE = /[^\p{C}\p{Z}]/u;

/**
 * Returns the platform's answer as it is stored: cut to 20,000 code points, without NUL and broken surrogates, which
 * Postgres cannot store. Nothing is escaped here: the text is hostile, and every channel escapes it for its own format.
 * A text counts even if `success` is false, because that flag alone is no failure (platform facts on error envelopes).
 */
export function readRecommendation(answer: {
  readonly success: boolean;
  readonly recommendation: string | null;
}): AdviceResult {
  const text = toStorable(answer.recommendation ?? "");
  if (VISIBLE.test(text)) return { success: true, text, errorKey: null };
  return { success: false, text: null, errorKey: answer.success ? NO_RECOMMENDATION : MODEL_FAILED };
}

function toStorable(received: string): string {
  const whole = received.replaceAll("\0", "").toWellFormed();
  // A code point is at most two units, so the slice holds enough of them; its broken end is beyond the cut.
  if (whole.length <= MAX_TEXT_CODE_POINTS) return whole;
  return Array.from(whole.slice(0, 2 * MAX_TEXT_CODE_POINTS))
    .slice(0, MAX_TEXT_CODE_POINTS)
    .join("");
}

/** Failures that are the platform's own decision: its key says more than our code. */
const TELLING = new Set(["EDGE_PLAN", "EDGE_NOT_FOUND", "EDGE_REJECTED", "EDGE_WINDOW"]);

/**
 * A failed call as it is stored. The key keeps how long the platform wants to be left alone, as `CODE.milliseconds`,
 * so that every replica can read it from the rows.
 */
export function toFailedAdvice(error: {
  readonly code: string;
  readonly errorKey: string | null;
  readonly waitMs: number | undefined;
}): AdviceResult {
  const { code, errorKey, waitMs } = error;
  const own = waitMs === undefined ? code : `${code}.${Math.ceil(waitMs)}`;
  return {
    success: false,
    text: null,
    errorKey: errorKey !== null && TELLING.has(code) && waitMs === undefined ? errorKey : own,
  };
}
