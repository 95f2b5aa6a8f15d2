/** Adds jobs to the queues, several in one round trip. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { toError } from "#lib/errors.ts";
import { within } from "#lib/waiting.ts";
import type { AnyJob } from "./define-job.ts";
import type { JobQueue } from "./job-queue.ts";

interface EnqueuerOptions {
  readonly jobQueue: JobQueue;
  /** The jobs that this process may run itself. */
  readonly jobs: readonly AnyJob[];
  readonly onError: (job: string, error: Error) => void;
}

export interface Enqueuer {
  /** Enqueues a job. If the queue's store is unreachable, runs the job here. Returns true if either has happened. */
  enqueue(job: string, payload?: Record<string, unknown>, delayMs?: number): Promise<boolean>;
  /** Aborts the jobs that run here. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Returns an enqueuer that does not depend on Redis: the rows say which work is due, so a process that cannot enqueue
 * a job runs it itself.
 */
export function createEnqueuer({ jobQueue, jobs, onError }: EnqueuerOptions): Enqueuer {
  const byName = new Map(jobs.map((job) => [job.name, job]));
  const running = new Map<string, Promise<void>>();
  const requestedAgain = new Set<string>();
  const stopping = new AbortController();

  async function runHere(job: AnyJob, payload: Record<string, unknown>): Promise<void> {
    if (stopping.signal.aborted) return;
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(job.timeoutMs)]);
    try {
      await job.run(job.payload.parse(payload), signal);
    } catch (thrown) {
      if (!stopping.signal.aborted) onError(job.name, toError(thrown));
    }
  }

  /**
   * Runs a job once at a time. If it is enqueued meanwhile, it runs once more, because its rows may have been written
   * after the first run read them.
   */
  async function runUntilDone(
    key: string,
    job: AnyJob,
    payload: Record<string, unknown>,
    delayMs: number,
  ): Promise<void> {
    if (delayMs > 0) await delay(delayMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    do {
      requestedAgain.delete(key);
      await runHere(job, payload);
    } while (requestedAgain.has(key) && !stopping.signal.aborted);
    running.delete(key);
  }

  return {
    async enqueue(name, payload = {}, delayMs = 0) {
      if (stopping.signal.aborted) return false;
      if (await jobQueue.enqueue(name, payload, randomUUID(), delayMs)) return true;
      const job = byName.get(name);
      if (job === undefined || stopping.signal.aborted) return false;
      const key = `${name} ${JSON.stringify(payload)}`;
      if (running.has(key)) requestedAgain.add(key);
      else running.set(key, runUntilDone(key, job, payload, delayMs));
      return true;
    },
    async stop(graceMs) {
      stopping.abort(new Error("the service is stopping"));
      await within(Promise.all(running.values()), graceMs);
    },
  };
}

/**
 * Returns a function that collects the items of one turn of the event loop and passes them to `run` at once. Every
 * caller gets the outcome of its batch. The items of the next turn are another batch, which does not wait for this
 * one.
 */
export function createBatch<Item, Result>(
  run: (items: Item[]) => Promise<Result>,
): (item: Item) => Promise<Result> {
  let waiting: { items: Item[]; outcome: Promise<Result> } | null = null;
  return (item) => {
    if (waiting === null) {
      const items: Item[] = [];
      const outcome = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        waiting = null;
        return run(items);
      });
      waiting = { items, outcome };
    }
    waiting.items.push(item);
    return waiting.outcome;
  };
}
