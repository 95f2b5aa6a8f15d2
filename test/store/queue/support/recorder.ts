import { z } from "zod";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";

/** A job that notes every run and then does what the test says. */
export function recorder(
  name: string,
  behave: (run: number, signal: AbortSignal) => Promise<void> = async () => {},
): { job: AnyJob; runs: number[] } {
  const runs: number[] = [];
  const job = defineJob({
    name,
    queue: "ingest",
    payload: z.object({ zoneId: z.number().int() }),
    attempts: 3,
    timeoutMs: 60_000,
    async run({ zoneId }, signal) {
      runs.push(zoneId);
      await behave(runs.length, signal);
    },
  });
  return { job, runs };
}
