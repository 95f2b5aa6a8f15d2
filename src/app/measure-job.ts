import type { AnyJob } from "#adapters/queue/define-job.ts";
import { readDisposition } from "#adapters/queue/run-attempt.ts";
import type { Metrics } from "#faces/http/metrics.ts";
import type { Clock } from "#lib/clock.ts";
import type { LastRun } from "#model/schedule.ts";

/** Returns the same job with its attempts counted and timed. The last attempt is stored in `lastRuns`. */
export function measureJob(
  job: AnyJob,
  metrics: Metrics,
  { clock, lastRuns }: { clock: Clock; lastRuns: Map<string, LastRun> },
): AnyJob {
  // Durations use the monotonic clock, because the wall clock may be corrected while jobs run.
  const ended = (outcome: "done" | "retry" | "give-up" | "wait", startedAt: number) =>
    metrics.jobEnded({
      job: job.name,
      outcome,
      durationMs: performance.now() - startedAt,
      endedAt: clock(),
    });
  return {
    ...job,
    async run(payload, signal) {
      const startedAt = performance.now();
      const { zoneId } = payload as { readonly zoneId?: number };
      const zone = zoneId === undefined ? "" : `zone ${zoneId}: `;
      const record = (result: LastRun["result"], why: string | null = null) =>
        lastRuns.set(job.name, { at: clock(), result, why: why === null ? null : `${zone}${why}` });
      try {
        const why = (await job.run(payload, signal)) ?? null;
        ended("done", startedAt);
        record(why === null ? "done" : "nothing to do", why);
      } catch (thrown) {
        ended(readDisposition(thrown) ?? "retry", startedAt);
        // A message may quote what an erasure must reach.
        record("failed", "the log has the error");
        throw thrown;
      }
    },
  };
}
