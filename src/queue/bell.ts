import { randomUUID } from "node:crypto";
import { toError } from "../lib/errors.ts";
import { within } from "../lib/within.ts";
import type { AnyJob } from "./define-job.ts";
import type { Doorbell } from "./doorbell.ts";

export interface BellOptions {
  readonly doorbell: Doorbell;
  /** Those this process may run itself. */
  readonly jobs: readonly AnyJob[];
  readonly onError: (job: string, error: Error) => void;
}

export interface Bell {
  /** Nudges a job through the queue; where the queue's store is gone, runs it here. True once either has happened. */
  ring(job: string, payload?: Record<string, unknown>): Promise<boolean>;
  /** Ends the jobs that run here. */
  stop(graceMs: number): Promise<void>;
}

/** Work must not wait for Redis: the rows say what is due, so a process that cannot ring does it itself. */
export function createBell({ doorbell, jobs, onError }: BellOptions): Bell {
  const byName = new Map(jobs.map((job) => [job.name, job]));
  const running = new Map<string, Promise<void>>();
  const rungAgain = new Set<string>();
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
      rungAgain.delete(key);
      await runHere(job, payload);
    } while (rungAgain.has(key) && !stopping.signal.aborted);
    running.delete(key);
  }

  return {
    async ring(name, payload = {}) {
      if (stopping.signal.aborted) return false;
      if (await doorbell.ring(name, payload, randomUUID())) return true;
      const job = byName.get(name);
      if (job === undefined || stopping.signal.aborted) return false;
      const key = `${name} ${JSON.stringify(payload)}`;
      if (running.has(key)) rungAgain.add(key);
      else running.set(key, runUntilQuiet(key, job, payload));
      return true;
    },
    async stop(graceMs) {
      stopping.abort(new Error("the service is stopping"));
      await within(Promise.all(running.values()), graceMs);
    },
  };
}
