import { createDatabase } from "#db/client.ts";
import {
  endRefusal,
  MAX_PAUSE_MS,
  pauseBudget,
  pauseZone,
  type RequestBudget,
  takeTokens,
} from "#db/ingest/request-budgets.ts";
import type { Secret } from "#lib/secret.ts";
import { createSharedGate } from "#platform/budget/shared-gate.ts";
import type { RequestGate, RequestPriority } from "#platform/transport/call.ts";

const STATEMENT_TIMEOUT_MS = 2_000;

/**
 * Returns the request budget of all replicas. It holds half a second of the rate, so that there is no burst after a
 * start or an idle hour.
 */
export function toRequestBudget(requestsPerSecond: number): RequestBudget {
  return { name: "edge", ratePerSecond: requestsPerSecond, burst: Math.max(2, requestsPerSecond / 2) };
}

export interface RequestGateParts {
  readonly databaseUrl: Secret;
  readonly requestsPerSecond: number;
  readonly onWaited?: (ms: number, priority: RequestPriority) => void;
  /** Called with the error when Postgres stops answering for the budget, and with null when it answers again. */
  readonly onUnshared?: (error: unknown) => void;
}

export interface OpenRequestGate {
  readonly gate: RequestGate;
  /** Closes the gate. Close the transport first. */
  close(): Promise<void>;
}

/**
 * Opens the limiter of one replica or command. It has its own connections, because the jobs that wait for it may use
 * all the others. Callers with low priority leave half of the bucket, so that a normal caller finds a token at once.
 * Without normal callers they still get the whole rate: only tokens in the bucket are reserved.
 */
export function openRequestGate(parts: RequestGateParts): OpenRequestGate {
  const database = createDatabase({
    url: parts.databaseUrl.reveal(),
    max: 2,
    applicationName: "longwatch budget",
    onError: () => undefined,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    lockTimeoutMs: STATEMENT_TIMEOUT_MS,
    connectTimeoutMs: STATEMENT_TIMEOUT_MS,
    queryTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  const budget = toRequestBudget(parts.requestsPerSecond);
  const reserves: Record<RequestPriority, number> = { normal: 0, low: budget.burst / 2 };
  const gate = createSharedGate({
    ratePerSecond: budget.ratePerSecond,
    take: (atMost, priority) => takeTokens(database.db, budget, { atMost, reserve: reserves[priority] }),
    async pause(pauseMs, zoneId) {
      if (zoneId !== null)
        return { isForAll: await pauseZone(database.db, budget.name, { zoneId, pauseMs }) };
      await pauseBudget(database.db, budget.name, pauseMs);
      return { isForAll: true };
    },
    answered: (zoneId) => endRefusal(database.db, zoneId),
    maxPauseMs: MAX_PAUSE_MS,
    onWaited: parts.onWaited ?? (() => {}),
    onUnshared: parts.onUnshared ?? (() => {}),
  });
  return {
    gate,
    async close() {
      gate.close();
      await database.close();
    },
  };
}
