import { z } from "zod";
import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import { defineJob } from "#adapters/queue/define-job.ts";
import { lockAdvice, readAsks, readSpikesToAdvise } from "#db/alerting/advice.ts";
import type { Database, Queryable } from "#db/client.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import { ANSWER_KEEPS_MS, REFUSAL_KEEPS_MS } from "#model/advice.ts";
import { planAsks } from "#stages/alerting/advice/plan-asks.ts";
import { type AdviceClaim, askPlatform, claimAsk } from "../ingest/ask-platform.ts";

/**
 * Maximum number of asks in one run, all sent at once. A run takes as long as one ask, so it ends before the next
 * tick.
 */
const ASKS_PER_RUN = 4;

export interface FetchAdviceDeps {
  readonly database: Database;
  readonly edge: Pick<EdgeClient, "getRecommendation">;
  readonly clock: Clock;
  readonly log: Log;
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
