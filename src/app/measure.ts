import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { DeliveryError } from "#delivery/receivers/delivery-error.ts";
import type { Metrics } from "#faces/http/metrics.ts";
import type { IngestObserver } from "#ingest/rules/read-page.ts";
import type { Clock } from "#lib/clock.ts";
import type { LastRun } from "#model/schedule.ts";
import type { AnyJob } from "#store/queue/define-job.ts";
import { readDisposition } from "#store/queue/job-queue.ts";

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

/** Counts the events that ingest stores. */
export function measureIngest(metrics: Metrics): IngestObserver {
  return {
    pageStored({ route, zoneId, entries, inserted, filled, quarantined, commitMs }) {
      metrics.pageCommit.observe({ route }, commitMs / 1_000);
      const zone = metrics.labelsOf(zoneId);
      metrics.pages.inc({
        route,
        ...zone,
        result: inserted + filled + quarantined > 0 ? "changed" : "known",
      });
      metrics.events.inc({ ...zone, route, result: "new" }, inserted);
      metrics.events.inc({ ...zone, route, result: "quarantined" }, quarantined);
      const known = Math.max(0, entries - inserted - quarantined);
      metrics.events.inc({ ...zone, route, result: "known" }, known);
    },
  };
}

/** Returns the channel with its attempts timed and counted by outcome: delivered, the error's code, or aborted. */
export function measureNotifier(notifier: Notifier, metrics: Metrics): Notifier {
  const channel = notifier.name;
  const ended = (outcome: string) => metrics.notifications.inc({ channel, outcome });
  return {
    name: notifier.name,
    kind: notifier.kind,
    capabilities: notifier.capabilities,
    async send(message, options) {
      const stopTimer = metrics.notificationDuration.startTimer({ channel });
      try {
        const result = await notifier.send(message, options);
        ended("delivered");
        return result;
      } catch (thrown) {
        ended(thrown instanceof DeliveryError ? thrown.code.toLowerCase() : "aborted");
        throw thrown;
      } finally {
        stopTimer();
      }
    },
  };
}
