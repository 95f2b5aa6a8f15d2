/** Asks the platform for advice, for spikes and for people. */

import { randomUUID } from "node:crypto";
import { z } from "zod";
import {
  type AdviceResult,
  type OpenSpike,
  planAsks,
  readRecommendation,
  toFailedAdvice,
} from "#alerts/rules/advice/advice-status.ts";
import {
  type AdviceKey,
  lockAdvice,
  readAsks,
  readSpikesToAdvise,
  reserveAsk,
  storeAdvice,
} from "#db/alerts/advice.ts";
import type { Database, Queryable } from "#db/client.ts";
import { acquireLease, releaseLease } from "#db/postgres/leases.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { Clock } from "#lib/clock.ts";
import { ANSWER_KEEPS_MS, ASKING, CLAIM_MS, MODEL_FAILED, REFUSAL_KEEPS_MS } from "#model/advice.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { defineJob } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";

/**
 * Maximum number of asks in one run, all sent at once. A run takes as long as one ask, so it ends before the next
 * tick.
 */
const ASKS_PER_RUN = 4;

export interface FetchAdviceDeps extends Pick<JobContext, "database" | "clock" | "log"> {
  readonly edge: Pick<EdgeClient, "getRecommendation">;
  /** Called when outcomes were stored, failures included. */
  readonly afterAdvice: () => unknown;
  /** Maximum number of asks in any hour, over all replicas. Default 30. */
  readonly budgetPerHour?: number;
  /** Time limit of one ask, retries included. Well below a minute, when its claim expires. Default 20 s. */
  readonly askTimeoutMs?: number;
}

/**
 * Asks the platform for its recommendation on rules that spike, once per episode, and stores the outcome. Two
 * replicas never ask about one rule at the same time: a claim is a lease and a row, written before the call. A
 * process that is killed while asking leaves both. The lease expires; the row stays in the budget and counts as a
 * failed try.
 */
export function createFetchAdviceJob(deps: FetchAdviceDeps) {
  return defineJob({
    name: "fetch-advice",
    queue: "derive",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 45_000,
    async run(_payload, signal) {
      const claims = await claimAsks(deps);
      if (claims.length === 0) return;
      const asked = await Promise.allSettled(claims.map((claim) => askPlatform(deps, claim, signal)));
      const stored = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      const failed = stored.flatMap(({ errorKey }) => (errorKey === null ? [] : [errorKey]));
      deps.log.info(
        { asked: claims.length, answered: stored.length - failed.length, failed },
        "advice fetched",
      );
      if (stored.length > 0) await deps.afterAdvice();
      for (const one of asked) if (one.status === "rejected") throw one.reason;
    },
  });
}

async function claimAsks(deps: FetchAdviceDeps): Promise<AdviceClaim[]> {
  const { database, clock, log } = deps;
  const nowMs = clock();
  // Checked without the lock first, because there is usually nothing to ask.
  const seen = await plan(database.db, deps, nowMs);
  if (seen.overBudget > 0) log.debug({ spikes: seen.overBudget }, "advice budget spent");
  if (seen.asks.length === 0) return [];
  return inTransaction(database, async ({ tx }) => {
    await lockAdvice(tx);
    const claims: AdviceClaim[] = [];
    for (const { id: spikeId, zoneId, ruleId } of (await plan(tx, deps, nowMs)).asks) {
      const claim = await claimAsk(tx, { zoneId, ruleId, askedAtMs: nowMs }, spikeId);
      if (claim !== null) claims.push(claim);
    }
    return claims;
  });
}

async function plan(db: Queryable, deps: FetchAdviceDeps, nowMs: number) {
  const spikes = await readSpikesToAdvise(db);
  if (spikes.length === 0) return { asks: [], overBudget: 0 };
  const rows = await readAsks(db, { sinceMs: nowMs - REFUSAL_KEEPS_MS, beforeOpeningMs: ANSWER_KEEPS_MS });
  return planAsks({ spikes, rows, nowMs, budgetPerHour: deps.budgetPerHour ?? 30, atMost: ASKS_PER_RUN });
}

interface AskAdviceDeps extends AskPlatformDeps {
  readonly clock: Clock;
  /** Maximum number of asks in any hour, over all replicas, including those of fetch-advice. */
  readonly budgetPerHour: number;
}

/**
 * Outcome of an ask for a person. `not-now`: the budget is spent, a recent refusal still applies, or another process
 * is asking.
 */
type AdviceOutcome =
  | { readonly kind: "answered"; readonly text: string }
  | { readonly kind: "failed"; readonly errorKey: string }
  | { readonly kind: "not-now" };

interface AskedRule {
  readonly zoneId: number;
  readonly ruleId: string;
}

/**
 * Asks the platform for advice on a rule because a person wants it now. The rules and the budget are those of
 * fetch-advice, and the outcome is stored. If the platform refused shortly before, it is not asked again.
 */
export function createAskAdvice(deps: AskAdviceDeps) {
  // The request does not depend on the person's connection: its answer is stored for later readers.
  const { signal } = new AbortController();
  return async (rule: AskedRule): Promise<AdviceOutcome> => {
    const nowMs = deps.clock();
    const claim = await inTransaction(deps.database, async ({ tx }) => {
      await lockAdvice(tx);
      if (!(await isDue(tx, deps, rule, nowMs))) return null;
      return claimAsk(tx, { zoneId: rule.zoneId, ruleId: rule.ruleId, askedAtMs: nowMs }, null);
    });
    if (claim === null) return { kind: "not-now" };
    const { success, text, errorKey } = await askPlatform(deps, claim, signal);
    return success && text !== null
      ? { kind: "answered", text }
      : { kind: "failed", errorKey: errorKey ?? MODEL_FAILED };
  };
}

/** Returns whether an ask is due, judged as for a spike that opens now. */
async function isDue(tx: Queryable, deps: AskAdviceDeps, rule: AskedRule, nowMs: number): Promise<boolean> {
  const rows = await readAsks(tx, {
    sinceMs: nowMs - REFUSAL_KEEPS_MS,
    beforeOpeningMs: ANSWER_KEEPS_MS,
  });
  const { budgetPerHour } = deps;
  const spike: OpenSpike = { id: 0, severity: "info", openedAtMs: nowMs, ...rule };
  return planAsks({ spikes: [spike], rows, nowMs, budgetPerHour, atMost: 1 }).asks.length > 0;
}

interface AskPlatformDeps {
  readonly database: Database;
  readonly edge: Pick<EdgeClient, "getRecommendation">;
  /** Time limit of one ask, retries included. Well below a minute, when its claim expires. Default 20 s. */
  readonly askTimeoutMs?: number;
}

interface AdviceClaim extends AdviceKey {
  readonly lease: string;
  readonly fence: number;
}

/**
 * Claims the ask about a rule for this replica: a lease and a row, which also counts in the budget. Returns null if
 * another replica has the claim. `tx` holds the lock of `lockAdvice`.
 */
async function claimAsk(tx: Queryable, key: AdviceKey, spikeId: number | null): Promise<AdviceClaim | null> {
  const lease = `fetch-advice:${key.zoneId}:${key.ruleId}`;
  // The rows measure an ask's age by this replica's clock, the lease by Postgres's. So a replica whose clock is ahead
  // does not ask twice.
  const fence = await acquireLease(tx, { name: lease, holder: randomUUID(), ttlMs: CLAIM_MS });
  if (fence === null) return null;
  if (await reserveAsk(tx, { ...key, spikeId, errorKey: ASKING })) return { ...key, lease, fence };
  await releaseLease(tx, { name: lease, fence });
  return null;
}

/** Sends the claimed ask and stores the outcome, failures included. */
async function askPlatform(
  deps: AskPlatformDeps,
  claim: AdviceClaim,
  signal: AbortSignal,
): Promise<AdviceResult> {
  const { database } = deps;
  try {
    const result = await request(deps, claim, signal);
    await storeAdvice(database.db, claim, result);
    return result;
  } finally {
    await releaseLease(database.db, { name: claim.lease, fence: claim.fence });
  }
}

async function request(
  deps: AskPlatformDeps,
  claim: AdviceClaim,
  signal: AbortSignal,
): Promise<AdviceResult> {
  const { zoneId: shieldZoneId, ruleId } = claim;
  const deadline = AbortSignal.timeout(deps.askTimeoutMs ?? 20_000);
  try {
    const until = AbortSignal.any([signal, deadline]);
    return readRecommendation(await deps.edge.getRecommendation({ shieldZoneId, ruleId }, until));
  } catch (thrown) {
    if (thrown instanceof EdgeError) return toFailedAdvice(thrown);
    // A stop is no failure of the platform, so the reservation stays as it is.
    signal.throwIfAborted();
    if (deadline.aborted) return toFailedAdvice({ code: "EDGE_TIMEOUT", errorKey: null, waitMs: undefined });
    throw thrown;
  }
}
