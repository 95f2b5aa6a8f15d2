import { z } from "zod";
import { defineJob } from "#store/queue/define-job.ts";
import { createJobQueue } from "#store/queue/job-queue.ts";
import { createBackend, type Kind } from "./backend.ts";

/**
 * A worker in a process of its own, for tests that kill or stop it: `<kind> <url> <job> <lockMs>`. Its job tells the
 * parent when it begins, and ends when the parent says so.
 */
const [kind, url = "", name = "", lockMs] = process.argv.slice(2);
const tell = (word: string) => process.send?.(word);

const job = defineJob({
  name,
  queue: "ingest",
  payload: z.object({ zoneId: z.number() }),
  attempts: 1,
  timeoutMs: 60_000,
  async run() {
    tell("begun");
    await new Promise((resolve) => process.once("message", resolve));
    tell("ended");
  },
});

createJobQueue({
  backend: createBackend(kind as Kind, url),
  jobs: [job],
  concurrency: 1,
  enqueueTimeoutMs: 1_000,
  lockMs: Number(lockMs),
  onError() {},
}).startWorkers(["ingest"]);
tell("started");
