import { toError } from "../errors.ts";
import type { Part, QueueBackend } from "./backend.ts";
import { type AnyJob, QUEUES, type QueueName } from "./define-job.ts";
import { runAttempt } from "./run-attempt.ts";
import { within } from "./within.ts";

export interface DoorbellOptions {
  readonly backend: QueueBackend;
  readonly jobs: readonly AnyJob[];
  /** Jobs of one queue that run at once in this process. */
  readonly concurrency: number;
  /** How long a ring may wait for the queue's store before it counts as down. */
  readonly ringTimeoutMs: number;
  readonly onError: (where: string, error: Error) => void;
}

export interface Doorbell {
  /**
   * Nudges a job. The id is never reused and never the guard against doubles; it holds no colon and is not a number.
   * False when the queue's store does not answer in time: the caller's rows stay due, so the work is late, not lost.
   */
  ring(job: string, payload: Record<string, unknown>, id: string): Promise<boolean>;
  /** Of these queues; of all by default. */
  startWorkers(names?: readonly QueueName[]): void;
  /** Stops claiming, aborts what still runs after the grace, and returns even when a job never ends. */
  close(graceMs: number): Promise<void>;
}

/** @throws {Error} when two jobs share a name, at start rather than at the first ring. */
export function createDoorbell(options: DoorbellOptions): Doorbell {
  const { backend, onError } = options;
  const byName = new Map(options.jobs.map((job) => [job.name, job]));
  if (byName.size !== options.jobs.length) throw new Error("two jobs share a name");
  const queues = new Map(QUEUES.map((name) => [name, backend.openQueue(name)]));
  for (const [name, queue] of queues) queue.on("error", (error) => onError(`queue ${name}`, error));
  const workers: Part[] = [];
  const stopping = new AbortController();

  function startWorker(name: QueueName) {
    const worker = backend.openWorker(
      name,
      async (job, token) => {
        const definition = byName.get(job.name);
        if (definition === undefined) throw new Error(`no job is called ${job.name}`);
        await runAttempt(definition, job, token, stopping.signal);
      },
      // Deploys kill workers; a stall is not a failure of the job, and the default of one would drop it.
      { concurrency: options.concurrency, maxStalledCount: 20 },
    );
    worker.on("error", (error) => onError(`worker ${name}`, error));
    workers.push(worker);
  }

  return {
    async ring(job, payload, id) {
      const definition = byName.get(job);
      if (definition === undefined) throw new Error(`no job is called ${job}`);
      try {
        const queue = queues.get(definition.queue);
        const added = queue?.add(job, payload, { jobId: id, attempts: definition.attempts });
        return (await within(Promise.resolve(added), options.ringTimeoutMs)) === "done";
      } catch (thrown) {
        onError(`ring ${job}`, toError(thrown));
        return false;
      }
    },
    startWorkers: (names = QUEUES) => names.forEach(startWorker),
    async close(graceMs) {
      // A graceful close has no deadline of its own, and it makes a later forced one wait for it as well.
      const drained = Promise.all(workers.map((worker) => worker.close()));
      if ((await within(drained, graceMs)) === "late") {
        stopping.abort(new Error("the service is stopping"));
        await within(drained, graceMs);
      }
      await within(Promise.all([...queues.values()].map((queue) => queue.close())), graceMs);
    },
  };
}
