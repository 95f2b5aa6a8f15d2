import { expect, test } from "vitest";
import { z } from "zod";
import { measureJob } from "#app/measure.ts";
import { createMetrics } from "#faces/http/metrics.ts";
import { UsageError } from "#lib/errors.ts";
import type { LastRun } from "#model/schedule.ts";
import { defineJob } from "#store/queue/define-job.ts";

const NOW = Date.UTC(2026, 10, 20);

function measured(run: () => Promise<string | void>, clock = () => NOW) {
  const metrics = createMetrics();
  const job = defineJob({
    name: "poll-events",
    queue: "ingest",
    payload: z.object({}),
    attempts: 1,
    timeoutMs: 1_000,
    run,
  });
  const lastRuns = new Map<string, LastRun>();
  const measuredJob = measureJob(job, metrics, { clock, lastRuns });
  const last = () => lastRuns.get("poll-events");
  return {
    metrics,
    last,
    run: () => measuredJob.run({ zoneId: 101 } as never, new AbortController().signal),
  };
}

test("a job that ended well is counted, and when it did", async () => {
  const { metrics, run } = measured(async () => undefined);
  await run();
  const text = await metrics.render();
  expect(text).toContain('longwatch_job_runs_total{job="poll-events",outcome="done"} 1');
  expect(text).toContain(`longwatch_job_last_success_timestamp_seconds{job="poll-events"} ${NOW / 1_000}`);
});

test.each<[string, unknown]>([
  ["retry", new Error("anything")],
  ["retry", "not even an error"],
  ["give-up", new UsageError(["wrong"])],
  ["wait", Object.assign(new Error("later"), { disposition: "wait" })],
])("a job that failed is counted as %s, and its failure is handed on as it was", async (outcome, thrown) => {
  const { metrics, run } = measured(async () => {
    throw thrown;
  });
  await expect(run()).rejects.toBe(thrown);
  const text = await metrics.render();
  expect(text).toContain(`longwatch_job_runs_total{job="poll-events",outcome="${outcome}"} 1`);
  expect(text).not.toContain("longwatch_job_last_success_timestamp_seconds{");
});

test("the last run of a job is recorded with its result and why it did nothing", async () => {
  const outcomes = [undefined, "every hour is searched", new Error("203.0.113.9 refused")];
  const { last, run } = measured(async () => {
    const outcome = outcomes.shift();
    if (outcome instanceof Error) throw outcome;
    return outcome;
  });
  await run();
  expect(last()).toEqual({ at: NOW, result: "done", why: null });
  await run();
  expect(last()).toEqual({ at: NOW, result: "nothing to do", why: "zone 101: every hour is searched" });
  await expect(run()).rejects.toThrow("refused");
  expect(last()).toEqual({ at: NOW, result: "failed", why: "zone 101: the log has the error" });
});

test("F8: a clock that is set back while a job runs makes no negative duration", async () => {
  let now = NOW;
  const { metrics, run } = measured(
    async () => void (now -= 600_000),
    () => now,
  );
  await run();
  const sum = /longwatch_job_duration_seconds_sum\{job="poll-events"\} (\S+)/.exec(await metrics.render());
  expect(Number(sum?.[1])).toBeGreaterThanOrEqual(0);
});
