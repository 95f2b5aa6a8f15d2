import { z } from "zod";
import { listDueRuns, readUnfinishedWork } from "#db/health/requested-runs.ts";
import { listRisingZones } from "#db/proof/platform-health.ts";
import { listRepairableZones } from "#db/proof/rule-cells.ts";
import { pickRising } from "#ingest/rules/plan-pass.ts";
import { horizonAt } from "#model/horizon.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { jobOfRun } from "./run-requested.ts";

export interface SweepDeps extends Pick<JobContext, "database" | "clock"> {
  readonly enqueue: (
    job:
      | ReturnType<typeof jobOfRun>
      | "poll-events"
      | "repair-window"
      | "roll-up-trends"
      | "fetch-advice"
      | "raise-alerts"
      | "deliver-alerts"
      | "send-digest",
    payload?: Record<string, unknown>,
  ) => Promise<unknown>;
  /** Returns the channels of the weekly digest. Default: none. */
  readonly digestChannels?: () => readonly string[];
  /** The zones that are polled between two ticks while something rises in them, by account, within so many requests. Default: none. */
  readonly polled?: readonly { readonly zoneIds: readonly number[]; readonly risingRequests: number }[];
}

/** A spike stays open for hours. Its changes enqueue these jobs at once; the sweep only makes up for a lost enqueue. */
const ADVICE_EVERY_MS = 60_000;
const OLD_SPIKES_EVERY_MS = 30_000;
const UPKEEP_EVERY_MS = 60_000;
const DIGEST_EVERY_MS = 60 * 60_000;
/** A run of the same zone waits for the one before. */
const MAX_RUNS = 10;

/**
 * Enqueues the jobs for work in the tables whose enqueue may have been lost: a flushed queue, a killed worker, a
 * retry that is due. It may enqueue too often. A job without due work does nothing. Also polls the zones in which something
 * rises, between two ticks.
 */
export function createSweepJob({
  database,
  enqueue,
  clock,
  polled = [],
  digestChannels = () => [],
}: SweepDeps): AnyJob {
  const enqueuedAt = new Map<string, number>();
  /**
   * Returns whether `job` was last enqueued here at least `everyMs` ago, or never. A clock that was set back counts
   * as long ago.
   */
  const isLongAgo = (job: string, everyMs: number, nowMs: number) => {
    const at = enqueuedAt.get(job);
    return at === undefined || Math.abs(nowMs - at) >= everyMs;
  };
  return defineJob({
    name: "sweep",
    queue: "alerts",
    payload: z.object({}),
    attempts: 1,
    timeoutMs: 20_000,
    async run() {
      const work = await readUnfinishedWork(database.db);
      const nowMs = clock();
      const runs = await listDueRuns(database.db, { nowMs, limit: MAX_RUNS });
      const repairable = await listRepairableZones(database.db, { nowMs, horizonMs: horizonAt(nowMs) });
      const watched = polled.filter(({ risingRequests }) => risingRequests > 0);
      const zoneIds = watched.flatMap((one) => one.zoneIds);
      const found = zoneIds.length === 0 ? [] : await listRisingZones(database.db, zoneIds, nowMs);
      const isAdviceDue = work.pendingSpikes && isLongAgo("fetch-advice", ADVICE_EVERY_MS, nowMs);
      const isRaiseDue =
        work.pendingSpikes && (work.newSpikes || isLongAgo("raise-alerts", OLD_SPIKES_EVERY_MS, nowMs));
      const isDeliverDue =
        work.dueNotifications || (work.channelUpkeep && isLongAgo("deliver-alerts", UPKEEP_EVERY_MS, nowMs));
      const isDigestDue = digestChannels().length > 0 && isLongAgo("send-digest", DIGEST_EVERY_MS, nowMs);
      const due = [
        ...(isDigestDue ? ["send-digest" as const] : []),
        ...(work.staleMinutes ? ["roll-up-trends" as const] : []),
        ...(isAdviceDue ? ["fetch-advice" as const] : []),
        ...(isRaiseDue ? ["raise-alerts" as const] : []),
        ...(isDeliverDue ? ["deliver-alerts" as const] : []),
      ];
      for (const job of due) enqueuedAt.set(job, nowMs);
      const enqueued = due.map((job) => enqueue(job));
      const rising = watched.flatMap((one) =>
        pickRising(
          found.filter(({ zoneId }) => one.zoneIds.includes(zoneId)),
          nowMs,
          one.risingRequests,
        ),
      );
      enqueued.push(...rising.map((zoneId) => enqueue("poll-events", { zoneId })));
      enqueued.push(...repairable.map((zoneId) => enqueue("repair-window", { zoneId })));
      enqueued.push(...runs.map(({ id, kind }) => enqueue(jobOfRun(kind), { id })));
      // A job that cannot be enqueued does not stop the others.
      for (const one of await Promise.allSettled(enqueued)) if (one.status === "rejected") throw one.reason;
      return enqueued.length === 0 ? "no work is left over" : undefined;
    },
  });
}
