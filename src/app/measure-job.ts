import type { AnyJob } from "#adapters/queue/define-job.ts";
import { readDisposition } from "#adapters/queue/run-attempt.ts";
import type { Metrics } from "#faces/http/metrics.ts";
import type { Clock } from "#lib/clock.ts";

/** Returns the same job with its attempts counted and timed. */
export function measureJob(job: AnyJob, metrics: Metrics, clock: Clock): AnyJob {
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
      try {
        await job.run(payload, signal);
        ended("done", startedAt);
      } catch (thrown) {
        ended(readDisposition(thrown) ?? "retry", startedAt);
        throw thrown;
      }
    },
  };
}
