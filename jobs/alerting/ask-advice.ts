import { lockAdvice, readAsks } from "#db/alerting/advice.ts";
import type { Queryable } from "#db/client.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { Clock } from "#lib/clock.ts";
import { ANSWER_KEEPS_MS, MODEL_FAILED, REFUSAL_KEEPS_MS } from "#model/advice.ts";
import { type OpenSpike, planAsks } from "#stages/alerting/advice/plan-asks.ts";
import { type AskPlatformDeps, askPlatform, claimAsk } from "../ingest/ask-platform.ts";

export interface AskAdviceDeps extends AskPlatformDeps {
  readonly clock: Clock;
  /** Maximum number of asks in any hour, over all replicas, including those of fetch-advice. */
  readonly budgetPerHour: number;
}

/**
 * Outcome of an ask for a person. `not-now`: the budget is spent, a recent refusal still applies, or another process
 * is asking.
 */
type Asked =
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
  return async (rule: AskedRule): Promise<Asked> => {
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
