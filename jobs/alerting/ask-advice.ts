import { lockAdvice, readAsks } from "../../db/alerting/advice.ts";
import type { Queryable } from "../../db/client.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { planAsks } from "../../src/alerting/advice/plan-asks.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { ANSWER_KEEPS_MS, MODEL_FAILED, REFUSAL_KEEPS_MS } from "../../src/model/advice-row.ts";
import { type AskPlatformDeps, askPlatform, claimAsk } from "../ingest/ask-platform.ts";

export interface AskAdviceDeps extends AskPlatformDeps {
  readonly clock: Clock;
  /** Asks at most in any hour, over all replicas, those of fetch-advice included. */
  readonly budgetPerHour: number;
}

/** What came of an ask on somebody's behalf; `not-now`: the budget is spent, a refusal holds, or another is asking. */
type Asked =
  | { readonly kind: "answered"; readonly text: string }
  | { readonly kind: "failed"; readonly errorKey: string }
  | { readonly kind: "not-now" };

interface AskedRule {
  readonly zoneId: number;
  readonly ruleId: string;
}

/**
 * Asks the platform about a rule because somebody wants to know now, by the rules of fetch-advice and out of the same
 * budget; what came of it is stored. The platform is not asked again where it refused a short while ago.
 */
export function createAskAdvice(deps: AskAdviceDeps) {
  // Whoever asked may leave: the answer is on its way and will be stored for the next one.
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

/** As a spike that opens now would be judged. */
async function isDue(tx: Queryable, deps: AskAdviceDeps, rule: AskedRule, nowMs: number): Promise<boolean> {
  const rows = await readAsks(tx, {
    sinceMs: nowMs - REFUSAL_KEEPS_MS,
    beforeOpeningMs: ANSWER_KEEPS_MS,
  });
  const { budgetPerHour } = deps;
  const spike = { id: 0, severity: "info", openedAtMs: nowMs, ...rule };
  return planAsks({ spikes: [spike], rows, nowMs, budgetPerHour, atMost: 1 }).asks.length > 0;
}
