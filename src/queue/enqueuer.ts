import { randomUUID } from "node:crypto";
import { toError } from "../lib/errors.ts";
import { within } from "../lib/within.ts";
import type { AnyJob } from "./define-job.ts";
import type { JobQueue } from "./job-queue.ts";

export interface EnqueuerOptions {
  readonly jobQueue: JobQueue;
  /** Those this process may run itself. */
  readonly jobs: readonly AnyJob[];
  readonly onError: (job: string, error: Error) => void;
}

export interface Enqueuer {
  /** Nudges a job through the queue; where the queue's store is gone, runs it here. True once either has happened. */
  enqueue(job: string, payload?: Record<string, unknown>): Promise<boolean>;
  /** Ends the jobs that run here. */
  stop(graceMs: number): Promise<void>;
}

/** Work must not wait for Redis: the rows say what is due, so a process that cannot ring does it itself. */
export function createEnqueuer({ jobQueue, jobs, onError }: EnqueuerOptions): Enqueuer {
  const byName = new Map(jobs.map((job) => [job.name, job]));
  const running = new Map<string, Promise<void>>();
  const requestedAgain = new Set<string>();
  const stopping = new AbortController();

  async function runHere(job: AnyJob, payload: Record<string, unknown>): Promise<void> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(job.timeoutMs)]);
    try {
      await job.run(job.payload.parse(payload), signal);
    } catch (thrown) {
      if (!stopping.signal.aborted) onError(job.name, toError(thrown));
    }
  }

  /** Once at a time; rung meanwhile, once more afterwards, because that ring's rows may have come after the look. */
  async function runUntilQuiet(key: string, job: AnyJob, payload: Record<string, unknown>): Promise<void> {
    do {
      requestedAgain.delete(key);
      await runHere(job, payload);
    } while (requestedAgain.has(key) && !stopping.signal.aborted);
    running.delete(key);
  }

  return {
    async enqueue(name, payload = {}) {
      if (stopping.signal.aborted) return false;
      if (await jobQueue.enqueue(name, payload, randomUUID())) return true;
      const job = byName.get(name);
      if (job === undefined || stopping.signal.aborted) return false;
      const key = `${name} ${JSON.stringify(payload)}`;
      if (running.has(key)) requestedAgain.add(key);
      else running.set(key, runUntilQuiet(key, job, payload));
      return true;
    },
    async stop(graceMs) {
      stopping.abort(new Error("the service is stopping"));
      await within(Promise.all(running.values()), graceMs);
    },
  };
}
