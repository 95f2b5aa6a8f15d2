/** Attempts of one call: which failures are tried again, and when. */
import type { Clock } from "#lib/clock.ts";
import type { Disposition } from "#lib/errors.ts";
import type { Deadline } from "#lib/waiting.ts";
import { EdgeError, type EdgeErrorCode } from "../edge-error.ts";
import {
  type EdgeCall,
  type EdgeOperation,
  isRepeatable,
  type RequestGate,
  ZonePausedError,
} from "./call.ts";
import { FailedAttempt, toFailedAttempt } from "./exchange.ts";
import type { Failure } from "./failure.ts";

/** One finished attempt, for metrics and debug logs. */
export interface AttemptReport {
  readonly operation: EdgeOperation;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  readonly durationMs: number;
  /** null after a success. */
  readonly code: EdgeErrorCode | null;
  readonly status: number | null;
  readonly requestId: string | null;
  /** How long until the next attempt; null when there is none. */
  readonly retryInMs: number | null;
}

export interface AttemptSettings {
  readonly maxAttempts: number;
  readonly timeoutMs: number | null;
  readonly gate: RequestGate;
  readonly clock: Clock;
  readonly random: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly onAttempt: (report: AttemptReport) => void;
  /** Removes the access key from a text, in case the platform echoes it. */
  readonly hideKey: (text: string) => string;
}

/** Keeps only name and message: errors of the HTTP parser hold raw response bytes, which may contain the key. */
function toCause(error: unknown, hideKey: (text: string) => string): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  const cause = new Error(hideKey(error.message));
  cause.name = error.name;
  return cause;
}

function dispositionOf(call: EdgeCall, code: EdgeErrorCode, waitMs: number | null): Disposition {
  if (waitMs !== null) return "wait";
  const mayHelp = mayRetry(code, isRepeatable(call)) || (code === "EDGE_TIMEOUT" && isRepeatable(call));
  return mayHelp ? "retry" : "give-up";
}

/** Returns the error of a failed attempt that the client throws. */
export function toEdgeError(
  call: EdgeCall,
  failed: FailedAttempt,
  waitMs: number | null,
  hideKey: (text: string) => string,
): EdgeError {
  const { failure, requestId } = failed;
  const hide = (text: string | null) => (text === null ? null : hideKey(text));
  return new EdgeError({
    operation: call.operation,
    code: failure.code,
    disposition: dispositionOf(call, failure.code, waitMs),
    text: hideKey(failure.message),
    status: failure.status,
    errorKey: hide(failure.errorKey),
    field: hide(failure.field),
    requestId: hide(requestId),
    waitMs: waitMs ?? undefined,
    cause: toCause(failed.cause, hideKey),
  });
}

/** A request that was not sent, because the platform refused the one before. */
const NOT_SENT: Omit<Failure, "message"> = {
  code: "EDGE_RATE_LIMITED",
  status: null,
  errorKey: null,
  field: null,
};

interface Round {
  readonly count: number;
  readonly elapsedMs: number;
  readonly isOver: boolean;
}

function planNext(call: EdgeCall, settings: AttemptSettings, failed: FailedAttempt, round: Round): RetryPlan {
  const { code } = failed.failure;
  if (round.isOver || !mayRetry(code, isRepeatable(call))) return { kind: "stop", waitMs: null };
  return planRetry({
    attempt: round.count,
    maxAttempts: settings.maxAttempts,
    code,
    retryAfterMs: failed.retryAfterMs,
    remainingMs: (settings.timeoutMs ?? Number.POSITIVE_INFINITY) - round.elapsedMs,
    random: settings.random(),
  });
}

/**
 * Runs `attempt` until it succeeds, fails for good, or attempts or time run out. Throws an EdgeError, or the
 * unchanged reason of the caller's own signal. The caller of this function releases the deadline.
 */
export async function runAttempts<
  Result extends { readonly status: number; readonly requestId: string | null },
>(
  call: EdgeCall,
  settings: AttemptSettings,
  deadline: Deadline,
  callerSignal: AbortSignal | undefined,
  attempt: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { clock, gate, hideKey, onAttempt } = settings;
  const startedAt = clock();
  const zoneId = call.zoneId ?? null;
  let waitedMs = 0;
  const enter = async () => {
    const waitingSince = clock();
    await deadline.suspend(() => gate.enter(call.priority ?? "normal", deadline.signal, zoneId));
    waitedMs += clock() - waitingSince;
  };
  for (let count = 1; ; count++) {
    let attemptedAt = clock();
    const report = (outcome: Pick<AttemptReport, "code" | "status" | "requestId" | "retryInMs">) =>
      onAttempt({ operation: call.operation, attempt: count, durationMs: clock() - attemptedAt, ...outcome });
    try {
      deadline.signal.throwIfAborted();
      await enter();
      attemptedAt = clock();
      const result = await attempt(deadline.signal);
      if (zoneId !== null) gate.answered(zoneId);
      report({ code: null, status: result.status, requestId: result.requestId, retryInMs: null });
      return result;
    } catch (thrown) {
      const endedBy = deadline.endedBy();
      if (endedBy === "caller") throw callerSignal?.reason;
      if (thrown instanceof ZonePausedError) {
        const failure = { ...NOT_SENT, message: thrown.message };
        throw toEdgeError(call, new FailedAttempt(failure, null, null), thrown.waitMs, hideKey);
      }
      const failed = toFailedAttempt(thrown, endedBy);
      const { code, status } = failed.failure;
      if (code === "EDGE_RATE_LIMITED") gate.limited(failed.retryAfterMs, zoneId);
      const round = { count, elapsedMs: clock() - startedAt - waitedMs, isOver: endedBy !== null };
      const plan = planNext(call, settings, failed, round);
      const retryInMs = plan.kind === "sleep" ? plan.delayMs : null;
      report({ code, status, requestId: failed.requestId, retryInMs });
      if (plan.kind === "stop") throw toEdgeError(call, failed, plan.waitMs, hideKey);
      // The next iteration checks for an abort during the pause.
      await settings.sleep(plan.delayMs, deadline.signal).catch(() => {});
    }
  }
}

const FIRST_BACKOFF_MS = 1_000;
/** The longest sleep within a call. A longer wait is returned to the caller. */
const MAX_SLEEP_MS = 30_000;
/** The longest wait that is accepted: events expire after 72 hours, so no header may stop a poller for a day. */
const MAX_WAIT_MS = 15 * 60_000;

/** Returns the maximum pause after the n-th failed attempt: 1, 2, 4 ... s, at most 30 s. */
function backoffCeilingMs(attempt: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MAX_SLEEP_MS);
}

/** Returns whether a retry may help and is harmless. A 429 did nothing, so it is safe for every method. */
function mayRetry(code: EdgeErrorCode, isRepeatable: boolean): boolean {
  if (code === "EDGE_RATE_LIMITED") return true;
  return (
    isRepeatable && (code === "EDGE_UNAVAILABLE" || code === "EDGE_NETWORK" || code === "EDGE_MALFORMED")
  );
}

type RetryPlan =
  | { readonly kind: "sleep"; readonly delayMs: number }
  /** `waitMs` is how long the caller should wait; null leaves the time to the caller's own schedule. */
  | { readonly kind: "stop"; readonly waitMs: number | null };

/**
 * Plans the next step after a failed attempt that may be repeated. The server's Retry-After replaces the back-off and
 * is not jittered.
 */
function planRetry(state: {
  attempt: number;
  maxAttempts: number;
  code: EdgeErrorCode;
  retryAfterMs: number | null;
  remainingMs: number;
  /** A number from 0 to 1, exclusive. */
  random: number;
}): RetryPlan {
  const { attempt, retryAfterMs } = state;
  const isWaitRequested = retryAfterMs !== null && retryAfterMs > 0;
  const delayMs = isWaitRequested ? retryAfterMs : Math.floor(state.random * backoffCeilingMs(attempt));
  const isLast = attempt >= state.maxAttempts;
  if (!isLast && delayMs <= MAX_SLEEP_MS && delayMs < state.remainingMs) return { kind: "sleep", delayMs };
  if (isWaitRequested) return { kind: "stop", waitMs: Math.min(retryAfterMs, MAX_WAIT_MS) };
  return { kind: "stop", waitMs: state.code === "EDGE_RATE_LIMITED" ? backoffCeilingMs(attempt) : null };
}
