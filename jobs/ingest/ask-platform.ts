import { randomUUID } from "node:crypto";
import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import { EdgeError } from "#adapters/edge/edge-error.ts";
import { type AdviceKey, reserveAsk, storeAdvice } from "#db/alerting/advice.ts";
import type { Database, Queryable } from "#db/client.ts";
import { acquireLease, releaseLease } from "#db/service/leases.ts";
import { ASKING, CLAIM_MS } from "#model/advice.ts";
import { type AdviceResult, readRecommendation } from "#stages/alerting/advice/read-recommendation.ts";
import { toFailedAdvice } from "#stages/alerting/advice/to-failed-advice.ts";

export interface AskPlatformDeps {
  readonly database: Database;
  readonly edge: Pick<EdgeClient, "getRecommendation">;
  /** Time limit of one ask, retries included. Well below a minute, when its claim expires. Default 20 s. */
  readonly askTimeoutMs?: number;
}

export interface AdviceClaim extends AdviceKey {
  readonly lease: string;
  readonly fence: number;
}

/**
 * Claims the ask about a rule for this replica: a lease and a row, which also counts in the budget. Returns null if
 * another replica has the claim. `tx` holds the lock of `lockAdvice`.
 */
export async function claimAsk(
  tx: Queryable,
  key: AdviceKey,
  spikeId: number | null,
): Promise<AdviceClaim | null> {
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
export async function askPlatform(
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
