import type { Clock } from "#lib/clock.ts";
import { messageOf } from "#lib/errors.ts";
import { explainTlsFailure } from "#lib/http.ts";
import type { Log } from "#lib/log.ts";
import { createRateLimitedReport } from "#lib/rate-limiter.ts";

/** States of the queue's store that end without a change of Longwatch, by what their errors say. */
const STATES = [
  ["loading", /^LOADING/],
  ["read-only", /^(READONLY|UNBLOCKED|MASTERDOWN|NOREPLICAS|CLUSTERDOWN)|^25006/],
  ["full", /^(OOM|MISCONF)|^53[0-9]{3}/],
  ["emptied", /^NOSCRIPT|^Missing (key|lock)/],
  ["silent", /^no answer within/],
  ["unreachable", /^(ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|E(HOST|NET)UNREACH|57P0|08)/],
  ["unreachable", /isn't writeable|max retries|(Connection|Socket|timeout) .*(closed|terminated|trying)/],
] as const;
type StoreState = (typeof STATES)[number][0];

/** Connections that wait for their next attempt may report an outage that has just ended. */
const SETTLE_MS = 5_000;

/**
 * Reports the outages of the queue's store: one warning for each state, without a stack, and one line when the store works
 * again. During an outage hundreds of commands fail, but all work goes on in this process. An error that names no such
 * state is reported with its stack, at most once a minute.
 */
export function createQueueOutageReports(
  store: "Redis" | "Postgres",
  { log, clock }: { readonly log: Log; readonly clock: Clock },
) {
  let outage: { sinceMs: number; lastMs: number; errors: number; states: Set<StoreState> } | null = null;
  const reportOther = createRateLimitedReport((where, err, leftOut) => {
    log.warn({ where, err, leftOut }, "queue operation failed");
  }, clock);
  const note = (state: StoreState, where: string, reason: string) => {
    const nowMs = clock();
    outage ??= { sinceMs: nowMs, lastMs: nowMs, errors: 0, states: new Set() };
    outage.lastMs = nowMs;
    outage.errors += 1;
    if (outage.states.has(state)) return;
    outage.states.add(state);
    log.warn({ store, state, where, reason }, "queue store failed");
  };
  return {
    onError(where: string, thrown: Error): void {
      const error = explainTlsFailure(thrown, store);
      const { code = "" } = error as NodeJS.ErrnoException;
      // If a name has several addresses that all fail, there is no message.
      const reason = messageOf(error) || code;
      const state = STATES.find(([, said]) => said.test(code) || said.test(error.message))?.[0];
      if (error !== thrown || state === undefined) reportOther(where, error);
      else note(state, where, reason);
    },
    /** Call it after each successful enqueue. */
    onEnqueued(): void {
      if (outage === null || clock() - outage.lastMs < SETTLE_MS) return;
      const { sinceMs, errors } = outage;
      log.info({ store, downMs: clock() - sinceMs, errors }, "queue store recovered");
      outage = null;
    },
  };
}
