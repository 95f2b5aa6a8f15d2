import type { Clock } from "#lib/clock.ts";
import type { Deadline } from "#lib/deadline.ts";
import type { Disposition } from "#lib/errors.ts";
import { EdgeError, type EdgeErrorCode } from "../edge-error.ts";
import type { EdgeOperation } from "../edge-operation.ts";
import { type EdgeCall, isRepeatable } from "./edge-call.ts";
import { FailedAttempt, toFailedAttempt } from "./failed-attempt.ts";
import type { Failure } from "./read-failure.ts";
import { type RequestGate, ZonePausedError } from "./request-gate.ts";
import { mayRetry, planRetry, type RetryPlan } from "./retry-timing.ts";

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
