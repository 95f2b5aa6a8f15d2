import { z } from "zod";
import type { Database } from "../db/client.ts";
import { type HeldLease, holdLease } from "../db/hold-lease.ts";
import { readCoveredHours } from "../db/queries/covered-hours.ts";
import { assertFence } from "../db/queries/leases.ts";
import { type HourComparison, readStoredCells, recordComparison } from "../db/queries/reconcile.ts";
import { inTransaction } from "../db/transaction.ts";
import type { Clock } from "../src/clock.ts";
import { compareCounts } from "../src/coverage/compare-counts.ts";
import type { CoveredHour } from "../src/coverage/covered-hour.ts";
import { HOUR_MS, horizonAt } from "../src/coverage/horizon.ts";
import { type Comparison, planComparison } from "../src/coverage/plan-comparison.ts";
import type { EdgeClient } from "../src/edge/edge-client.ts";
import type { Log } from "../src/log.ts";
import { type AnyJob, defineJob } from "../src/queue/define-job.ts";
import { readRuleCounts } from "./read-rule-counts.ts";

const LEASE_TTL_MS = 60_000;
/** What an hour still lacks while its closing search is to come, that search will bring. */
const SEARCH_GRACE_MS = 5 * 60_000;

export interface ReconcileCountsDeps {
  readonly database: Database;
  readonly edge: Pick<EdgeClient, "searchEventLogs">;
  readonly clock: Clock;
  readonly log: Log;
  /** Until when an event may still appear after its time. */
  readonly settleMs: number;
  /** Told when cells were found to lack events. */
  readonly afterMissing: (zoneId: number) => Promise<unknown>;
  /** Told when hours were found to be as the platform counts them. */
  readonly afterMatch: (zoneId: number) => Promise<unknown>;
}

/**
 * Compares what is stored of one zone with the platform's own counts, cell by cell (rule and hour): all undecided hours
 * in one grouped search. Safe beside itself: one runner per zone, and of two comparisons the later one stands.
 */
export function createReconcileCountsJob(deps: ReconcileCountsDeps): AnyJob {
  return defineJob({
    name: "reconcile-counts",
    queue: "ingest",
    payload: z.strictObject({ zoneId: z.int() }),
    attempts: 3,
    timeoutMs: 300_000,
    async run({ zoneId }, signal) {
      const name = `reconcile-counts.${zoneId}`;
      await holdLease(deps.database, { name, ttlMs: LEASE_TTL_MS }, (lease) =>
        reconcile(deps, { zoneId, lease }, AbortSignal.any([signal, lease.lost])),
      );
    },
  });
}

interface Zone {
  readonly zoneId: number;
  readonly lease: HeldLease;
}

async function reconcile(deps: ReconcileCountsDeps, zone: Zone, signal: AbortSignal): Promise<void> {
  const { database, edge, clock, log } = deps;
  const { zoneId } = zone;
  // Before anything is read: whatever is stored from now on is newer than the comparison.
  const at = clock();
  const hours = await readCoveredHours(database.db, zoneId, { fromMs: horizonAt(at), toMs: at });
  const span = planComparison(at, hours, deps);
  if (span === null) return;
  const upstream = await readRuleCounts(edge, zoneId, span, signal);
  const compared = selectOpen(hours, span);
  const known = new Map(compared.map((hour) => [hour.startsAt, hour]));
  const stored = await readStoredCells(database.db, zoneId, [...known.keys()]);
  const results = compareCounts([...known.keys()], upstream, stored).map((hour): HourComparison => {
    const before = known.get(hour.startsAt);
    const isSearched = before?.closingSearchAt != null;
    const repairAt = isSearched ? at : at + SEARCH_GRACE_MS;
    return { ...hour, counterBefore: before?.storedCount ?? 0, repairAt };
  });
  await inTransaction(database, async ({ tx }) => {
    await recordComparison(tx, zoneId, results, at);
    await assertFence(tx, zone.lease.name, zone.lease.fence);
  });
  const facts = { zoneId, ...span, from: new Date(span.from), ...countDifferences(results) };
  if (facts.missing > 0) log.warn(facts, "counts differ");
  else log.debug(facts, "counts compared");
  if (facts.missing > 0) await deps.afterMissing(zoneId);
  if (results.some(({ differing }) => differing.length === 0)) await deps.afterMatch(zoneId);
}

/** Those between them are decided: what the platform counts there changes nothing. */
function selectOpen(hours: readonly CoveredHour[], span: Comparison): CoveredHour[] {
  const toMs = span.from + span.hours * HOUR_MS;
  return hours.filter(({ startsAt, state }) => state === "open" && startsAt >= span.from && startsAt < toMs);
}

function countDifferences(hours: readonly HourComparison[]): { missing: number; surplus: number } {
  const cells = hours.flatMap(({ differing }) => differing);
  const missing = cells.filter((cell) => cell.storedCount < cell.upstreamCount).length;
  return { missing, surplus: cells.length - missing };
}
