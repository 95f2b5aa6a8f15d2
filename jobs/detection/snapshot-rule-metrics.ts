import { z } from "zod";
import { compareDays, listDueRules, type Snapshot, storeSnapshot } from "#db/detection/rule-metrics.ts";
import { holdLease, type OwnedLease } from "#db/postgres/hold-lease.ts";
import { assertFence } from "#db/postgres/leases.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { type DailyCounts, toDailyCounts } from "#detection/rules/thresholds/hour-history.ts";
import { DAY_MS } from "#lib/units.ts";
import { inLanes } from "#lib/waiting.ts";
import type { SeriesKey } from "#model/fingerprint.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";

const OVERVIEW_DAYS = 28;
const LEASE_TTL_MS = 15_000;
/** Maximum number of rules that are fetched in one run. The next run fetches the rest. */
const RULES_PER_RUN = 200;
const AT_ONCE = 4;
/** Pause after a failure that may pass. */
const RETRY_MS = 15 * 60_000;
/** Errors that concern the account, so that no rule of the zone can be fetched. */
const OF_THE_ACCOUNT: ReadonlySet<string> = new Set(["EDGE_UNAUTHORIZED", "EDGE_FORBIDDEN", "EDGE_PLAN"]);
const REFUSED_MS = 60 * 60_000;

export interface SnapshotRuleMetricsDeps extends Pick<JobContext, "database" | "clock" | "log" | "zoneIds"> {
  readonly edge: Pick<EdgeClient, "getRuleMetrics">;
  readonly rulesPerRun?: number;
}

/**
 * Stores the platform's own daily counts of every rule that was seen in the last 28 days, once a day and soon after
 * the rule was first seen. One runner at a time. A killed run has stored the rules that it fetched; the others stay
 * due.
 */
export function createSnapshotRuleMetricsJob(deps: SnapshotRuleMetricsDeps): AnyJob {
  return defineJob({
    name: "snapshot-rule-metrics",
    queue: "derive",
    payload: z.object({}),
    attempts: 1,
    timeoutMs: 240_000,
    async run(_payload, signal) {
      const lease = { name: "snapshot-rule-metrics", ttlMs: LEASE_TTL_MS };
      const due = await holdLease(deps.database, lease, (owned) =>
        snapshot(deps, owned, AbortSignal.any([signal, owned.lost])),
      );
      if (due === null) return LEASE_TAKEN;
      return due === 0 ? "no rule is due" : undefined;
    },
  });
}

/** Returns the number of rules that were due. */
async function snapshot(
  deps: SnapshotRuleMetricsDeps,
  lease: OwnedLease,
  signal: AbortSignal,
): Promise<number> {
  const { database, clock, log, zoneIds } = deps;
  const nowMs = clock();
  const due = await listDueRules(database.db, {
    zoneIds,
    nowMs,
    sinceMs: nowMs - OVERVIEW_DAYS * DAY_MS,
    limit: deps.rulesPerRun ?? RULES_PER_RUN,
  });
  if (due.length === 0) return 0;
  const run = {
    answered: [] as SeriesKey[],
    failed: new Map<string, number>(),
    refused: new Set<number>(),
  };
  try {
    await inLanes(due, AT_ONCE, async (rule) => {
      signal.throwIfAborted();
      if (!run.refused.has(rule.zoneId)) await askAbout(deps, { rule, lease, run }, signal);
    });
  } finally {
    log.info(
      { due: due.length, answered: run.answered.length, failed: Object.fromEntries(run.failed) },
      "rule metrics stored",
    );
  }
  await reportBeyond(deps, run.answered, nowMs);
  return due.length;
}

interface Asking {
  readonly rule: SeriesKey;
  readonly lease: OwnedLease;
  readonly run: {
    answered: SeriesKey[];
    failed: Map<string, number>;
    refused: Set<number>;
  };
}

async function askAbout(deps: SnapshotRuleMetricsDeps, { rule, lease, run }: Asking, signal: AbortSignal) {
  const askedAtMs = deps.clock();
  const keep = async (days: DailyCounts[], dueInMs: number, errorCode: string | null = null) => {
    const kept: Snapshot = { ...rule, askedAtMs, dueAtMs: askedAtMs + dueInMs, errorCode, days };
    await inTransaction(deps.database, async ({ tx }) => {
      await storeSnapshot(tx, kept);
      await assertFence(tx, lease.name, lease.fence);
    });
  };
  try {
    const { zoneId: shieldZoneId, ruleId } = rule;
    const counts = toDailyCounts(await deps.edge.getRuleMetrics({ shieldZoneId, ruleId }, signal));
    await keep(counts.filter(isPlausible(askedAtMs)), DAY_MS);
    run.answered.push(rule);
  } catch (thrown) {
    if (!(thrown instanceof EdgeError)) throw thrown;
    const { code, disposition } = thrown;
    run.failed.set(code, (run.failed.get(code) ?? 0) + 1);
    // The platform asks for a pause of the zone: its rules stay due.
    if (disposition === "wait") run.refused.add(rule.zoneId);
    else if (OF_THE_ACCOUNT.has(code)) {
      run.refused.add(rule.zoneId);
      await keep([], REFUSED_MS, code);
    } else await keep([], disposition === "retry" ? RETRY_MS : DAY_MS, code);
  }
}

/** Returns a check that counts are at most a day in the future and no older than the platform serves. */
function isPlausible(nowMs: number): (counts: DailyCounts) => boolean {
  return ({ day }) => {
    const age = nowMs - Date.parse(day);
    return age > -DAY_MS && age < (OVERVIEW_DAYS + 2) * DAY_MS;
  };
}

/**
 * Logs rules of which the platform counts more than is stored. The difference is evidence, not proof, and has no
 * other effect.
 */
async function reportBeyond(
  { database, log }: SnapshotRuleMetricsDeps,
  answered: readonly SeriesKey[],
  nowMs: number,
) {
  for (const [zoneId, rules] of Map.groupBy(answered, (rule) => rule.zoneId)) {
    const ruleIds = rules.map(({ ruleId }) => ruleId);
    const span = { fromMs: nowMs - OVERVIEW_DAYS * DAY_MS, toMs: nowMs, ruleIds };
    const { beyond } = await compareDays(database.db, zoneId, span);
    for (const { upstream, ...day } of beyond)
      log.warn({ zoneId, ...day, platform: upstream }, "platform counted more than stored");
  }
}
