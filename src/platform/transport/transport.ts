/** The transport of all operations: connections, and the attempts of a call: which failures are tried again, and when. */
import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";
import { type Clock, systemClock } from "#lib/clock.ts";
import { UsageError } from "#lib/errors.ts";
import type { Secret } from "#lib/secret.ts";
import { type Deadline, startDeadline } from "#lib/waiting.ts";
import type { EdgeErrorCode } from "../edge-error.ts";
import {
  type EdgeCall,
  type EdgeOperation,
  isRepeatable,
  openGate,
  type RequestGate,
  ZonePausedError,
} from "./call.ts";
import { type CsvReply, guardStream, receiveCsv } from "./csv.ts";
import { type EdgeReply, exchange, receiveReply } from "./exchange.ts";
import { FailedAttempt, type Failure, mayRetry, toEdgeError, toFailedAttempt } from "./failure.ts";

const CONNECT_TIMEOUT_MS = 10_000;

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

export interface EdgeTransportOptions {
  /** http or https, with an optional path prefix. */
  readonly baseUrl: string;
  /** Revealed at each request, so that it may change. */
  readonly accessKey: Secret;
  /** Admits every attempt. Default: open. */
  readonly gate?: RequestGate | undefined;
  /**
   * Total time of a call: connecting, every attempt, every pause between them, the whole body; without the wait at
   * the gate. Default 30 s.
   */
  readonly timeoutMs?: number | undefined;
  /** Maximum size of a decompressed body. Default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** Maximum number of sockets; further calls queue. Default 8. */
  readonly connections?: number;
  /** Includes the first attempt. Default 4. */
  readonly maxAttempts?: number;
  readonly clock?: Clock;
  /** Returns a number from 0 to 1, exclusive, for the jitter of the back-off. */
  readonly random?: () => number;
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly onAttempt?: (report: AttemptReport) => void;
  /** Called with an oddity of an answer that was used all the same. */
  readonly onWarning?: ((text: string) => void) | undefined;
}

export interface StreamLimits {
  /** Longest silence of the platform, before the first byte and between any two bytes. */
  readonly idleTimeoutMs: number;
  /** Total time of the stream, including attempts before the first byte, without the gate; null for no limit. */
  readonly timeoutMs: number | null;
}

export interface EdgeTransport {
  /** Returns a whole answer. Throws EdgeError, or the signal's reason when the caller aborts. */
  request(call: EdgeCall, signal?: AbortSignal): Promise<EdgeReply>;
  /** Returns a file as it arrives. Retries end with the first byte. Leaving the loop closes the connection. */
  stream(call: EdgeCall, limits: StreamLimits, signal?: AbortSignal): Promise<CsvReply>;
  /** Reports an oddity of an answer that is used all the same. */
  warn(text: string): void;
  /** Aborts every running call and closes the sockets. */
  close(): Promise<void>;
}

interface AttemptSettings {
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

function readSettings(options: EdgeTransportOptions): AttemptSettings {
  return {
    maxAttempts: options.maxAttempts ?? 4,
    timeoutMs: options.timeoutMs ?? 30_000,
    gate: options.gate ?? openGate,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    sleep: options.sleep ?? ((ms, signal) => delay(ms, undefined, { signal })),
    onAttempt: options.onAttempt ?? (() => {}),
    hideKey: (text) => text.replaceAll(options.accessKey.reveal(), "[secret]"),
  };
}

/**
 * Returns the transport, which every request to the platform uses: pooled sockets, total deadlines, size limits,
 * retries, failures as EdgeError.
 */
export function createEdgeTransport(options: EdgeTransportOptions): EdgeTransport {
  const { origin, basePath } = checkConnection(options.baseUrl, options.accessKey);
  const settings = readSettings(options);
  const maxBodyBytes = options.maxBodyBytes ?? 64 * 1_024 * 1_024;
  const connection = { basePath, accessKey: options.accessKey, clock: settings.clock };
  const pool = new Pool(origin, {
    connections: options.connections ?? 8,
    allowH2: false,
    connect: { timeout: Math.min(settings.timeoutMs ?? CONNECT_TIMEOUT_MS, CONNECT_TIMEOUT_MS) },
  });
  const closing = new AbortController();

  return {
    async request(call, signal) {
      const deadline = startDeadline(settings.timeoutMs, signal, closing.signal);
      try {
        return await runAttempts(call, settings, deadline, signal, async (until) => {
          const answer = await exchange(pool, connection, call, 0, until);
          return receiveReply(call, answer, maxBodyBytes, until);
        });
      } finally {
        deadline.release();
      }
    },

    async stream(call, limits, signal) {
      const deadline = startDeadline(limits.timeoutMs, signal, closing.signal);
      const once = { ...settings, timeoutMs: limits.timeoutMs };
      try {
        const reply = await runAttempts(call, once, deadline, signal, async (until) => {
          const answer = await exchange(pool, connection, call, limits.idleTimeoutMs, until);
          return receiveCsv(answer, until);
        });
        return { ...reply, chunks: guardStream(call, settings.hideKey, deadline, signal, reply) };
      } catch (error) {
        deadline.release();
        throw error;
      }
    },

    warn: options.onWarning ?? (() => undefined),

    async close() {
      closing.abort();
      await pool.destroy();
    },
  };
}

/** Returns a transport that sends each call over the one that `pick` returns for its zone. Close each by itself. */
export function routeByZone(
  pick: (zoneId: number | undefined) => EdgeTransport,
): Omit<EdgeTransport, "close"> {
  return {
    request: (call, signal) => pick(call.zoneId).request(call, signal),
    stream: (call, limits, signal) => pick(call.zoneId).stream(call, limits, signal),
    warn: (text) => pick(undefined).warn(text),
  };
}

/**
 * Runs `attempt` until it succeeds, fails for good, or attempts or time run out. Throws an EdgeError, or the
 * unchanged reason of the caller's own signal. The caller of this function releases the deadline.
 */
async function runAttempts<Result extends { readonly status: number; readonly requestId: string | null }>(
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
      const plan = planRetry(call, settings, failed, round);
      const retryInMs = plan.kind === "sleep" ? plan.delayMs : null;
      report({ code, status, requestId: failed.requestId, retryInMs });
      if (plan.kind === "stop") throw toEdgeError(call, failed, plan.waitMs, hideKey);
      // The next iteration checks for an abort during the pause.
      await settings.sleep(plan.delayMs, deadline.signal).catch(() => {});
    }
  }
}

/** A request that was not sent, because the platform refused the one before. */
const NOT_SENT: Omit<Failure, "message"> = {
  code: "EDGE_RATE_LIMITED",
  status: null,
  errorKey: null,
  field: null,
};

const FIRST_BACKOFF_MS = 1_000;
/** The longest sleep within a call. A longer wait is returned to the caller. */
const MAX_SLEEP_MS = 30_000;
/** The longest wait that is accepted: events expire after 72 hours, so no header may stop a poller for a day. */
const MAX_WAIT_MS = 15 * 60_000;

/** Returns the maximum pause after the n-th failed attempt: 1, 2, 4 ... s, at most 30 s. */
function backoffCeilingMs(attempt: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MAX_SLEEP_MS);
}

type RetryPlan =
  | { readonly kind: "sleep"; readonly delayMs: number }
  /** `waitMs` is how long the caller should wait; null leaves the time to the caller's own schedule. */
  | { readonly kind: "stop"; readonly waitMs: number | null };

interface Round {
  readonly count: number;
  readonly elapsedMs: number;
  readonly isOver: boolean;
}

/**
 * Plans the next step after a failed attempt. The server's Retry-After replaces the back-off and is not jittered.
 */
function planRetry(
  call: EdgeCall,
  { maxAttempts, timeoutMs, random }: AttemptSettings,
  { failure: { code }, retryAfterMs }: FailedAttempt,
  { count, elapsedMs, isOver }: Round,
): RetryPlan {
  if (isOver || !mayRetry(code, isRepeatable(call))) return { kind: "stop", waitMs: null };
  const isWaitRequested = retryAfterMs !== null && retryAfterMs > 0;
  const delayMs = isWaitRequested ? retryAfterMs : Math.floor(random() * backoffCeilingMs(count));
  const remainingMs = (timeoutMs ?? Number.POSITIVE_INFINITY) - elapsedMs;
  if (count < maxAttempts && delayMs <= MAX_SLEEP_MS && delayMs < remainingMs)
    return { kind: "sleep", delayMs };
  if (isWaitRequested) return { kind: "stop", waitMs: Math.min(retryAfterMs, MAX_WAIT_MS) };
  return { kind: "stop", waitMs: code === "EDGE_RATE_LIMITED" ? backoffCeilingMs(count) : null };
}

/** Splits the base address into origin and path prefix. Throws a UsageError naming every mistake, never the key. */
function checkConnection(baseUrl: string, accessKey: Secret): { origin: string; basePath: string } {
  const mistakes: string[] = [];
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    mistakes.push(
      `the platform's address ${JSON.stringify(baseUrl.replace(/\/\/[^/@]*@/, "//"))} must be an http or https URL`,
    );
  } else if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    mistakes.push(`the platform's address on ${url.host} must hold no user, password, query or fragment`);
  }
  if (!/^[\u0021-\u007e]+$/.test(accessKey.reveal())) {
    mistakes.push("the access key must be printable ASCII without blanks, and not empty");
  }
  if (mistakes.length > 0 || url === null) throw new UsageError(mistakes);
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, "") };
}
