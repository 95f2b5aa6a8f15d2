/** Which spikes are asked about, and what an answer says. */
import { HOUR_MS } from "#lib/units.ts";
import { type AdviceRow, type AdvisedSpike, MODEL_FAILED, NO_RECOMMENDATION } from "#model/advice.ts";
import { SEVERITIES, type Severity } from "#model/kinds.ts";
import { adviceStatus } from "./advice-status.ts";

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
