import { createDatabase } from "../../db/client.ts";
import {
  MAX_PAUSE_MS,
  pauseBudget,
  type RequestBudget,
  takeTokens,
} from "../../db/service/request-budgets.ts";
import type { RequestGate, RequestPriority } from "../edge/transport/request-gate.ts";
import type { Secret } from "../lib/secret.ts";
import { createSharedGate } from "./shared-gate.ts";

const STATEMENT_TIMEOUT_MS = 2_000;

/** The bucket that all replicas draw from: half a second's worth at once, so that a start or an idle hour is no burst. */
export function toRequestBudget(requestsPerSecond: number): RequestBudget {
  return { name: "edge", ratePerSecond: requestsPerSecond, burst: Math.max(2, requestsPerSecond / 2) };
}

export interface RequestGateParts {
  readonly databaseUrl: Secret;
  readonly requestsPerSecond: number;
  readonly onWaited?: (ms: number) => void;
  /** Told when Postgres stops answering for the budget, and, with null, when it does again. */
  readonly onLonely?: (error: unknown) => void;
}

export interface OpenRequestGate {
  readonly gate: RequestGate;
  /** Close the transport first. */
  close(): Promise<void>;
}

/**
 * The gate of one replica or command. It has connections of its own: jobs that wait for it may hold all the others.
 * Low callers leave half the bucket, so that a normal one finds a token at once however many low ones there are, and
 * while nobody else asks they still get the whole rate: only what lies in the bucket is reserved, nothing of the rate.
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
    pause: (pauseMs) => pauseBudget(database.db, budget.name, pauseMs),
    maxPauseMs: MAX_PAUSE_MS,
    onWaited: parts.onWaited ?? (() => {}),
    onLonely: parts.onLonely ?? (() => {}),
  });
  return {
    gate,
    async close() {
      gate.close();
      await database.close();
    },
  };
}
