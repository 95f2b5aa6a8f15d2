/** The queue of one kind of jobs: its worker, its attempts and their dispositions. */

import { DelayedError, type Job, UnrecoverableError } from "bullmq";
import { type Clock, systemClock } from "#lib/clock.ts";
import { type Disposition, isFailedQuery, messageOf, toError } from "#lib/errors.ts";
import { within } from "#lib/waiting.ts";
import type { QueueBackend, QueuedJob } from "./backend.ts";
import { type AnyJob, QUEUES, type QueueName } from "./define-job.ts";
import { createBatch } from "./enqueuer.ts";
import { type Lasting, openLasting, type Part } from "./lasting.ts";

/** Payloads name rows by ids. A larger payload holds content, which dashboards must not show. */
const MAX_PAYLOAD_BYTES = 1_000;
const LOCK_MS = 30_000;
/** On Postgres, adding several jobs at once makes two temporary tables: the work of adding more than eight jobs singly. */
const MOST_SINGLE = 8;
const STORE_CHECK_MS = 5 * 60_000;
/** How much the clocks of two replicas may differ. */
const CLOCK_SKEW_MS = 5_000;

export interface JobQueueOptions {
  readonly backend: QueueBackend;
  readonly jobs: readonly AnyJob[];
  /** Maximum number of jobs of one queue that run at once in this process. */
  readonly concurrency: number;
  /** How long an enqueue may wait for the queue's store before the store counts as down. */
  readonly enqueueTimeoutMs: number;
  /**
   * Lifetime of a job's lock. A job whose worker has not renewed the lock for this long goes to another worker; a
   * running job renews it, however long it runs. Stopped workers and failed connections are checked at the same
   * interval. Default 30 s.
   */
  readonly lockMs?: number;
  readonly onError: (where: string, error: Error) => void;
  readonly clock?: Clock;
}

export interface JobQueue {
  /**
   * Enqueues a job. The id is never reused, does not protect against duplicates, holds no colon and is not a number.
   * Returns false when the queue's store does not answer in time. The caller's rows stay due, so the work is late,
   * not lost. With a delay, the job waits in the queue for that long.
   */
  enqueue(job: string, payload: Record<string, unknown>, id: string, delayMs?: number): Promise<boolean>;
  /** Starts the workers of these queues; of all by default. */
  startWorkers(names?: readonly QueueName[]): void;
  /**
   * Stops claiming jobs, aborts those that still run after the grace, and returns after twice the grace even when a job
   * never ends or the store does not answer. Idempotent.
   */
  close(graceMs: number): Promise<void>;
}

/** @throws {Error} when two jobs share a name, at start rather than at the first enqueue. */
export function createJobQueue(options: JobQueueOptions): JobQueue {
  const { backend, lockMs = LOCK_MS, clock = systemClock } = options;
  let isClosed = false;
  const onError = (where: string, error: Error) => {
    if (!isClosed) options.onError(where, error);
  };
  const byName = new Map(options.jobs.map((job) => [job.name, job]));
  if (byName.size !== options.jobs.length) throw new Error("two jobs share a name");
  /** Closes every part. A part whose store is unreachable is reported to `onError` and skipped. */
  const closeAll = (parts: Iterable<Lasting<Part>>) =>
    Promise.all(
      [...parts].map((part) => part.close().catch((thrown: unknown) => onError("close", toError(thrown)))),
    );
  const lasting = <P extends Part>(where: string, open: () => P) =>
    openLasting(open, (error) => onError(where, error), Math.min(lockMs, 5_000));
  const openQueue = (name: QueueName) => lasting(`queue ${name}`, () => backend.openQueue(name));
  const queues = new Map(QUEUES.map((name) => [name, openQueue(name)]));
  /**
   * Ticks of many zones are due at the same time, so jobs that are added to a queue at the same moment share one
   * round trip.
   */
  const batches = new Map(
    QUEUES.map((name) => [
      name,
      createBatch(async (jobs: QueuedJob[]) => {
        const queue = await queues.get(name)?.ready();
        if (queue === undefined) return;
        if (jobs.length > MOST_SINGLE) await queue.addBulk(jobs);
        else await Promise.all(jobs.map(({ name, data, opts }) => queue.add(name, data, opts)));
      }),
    ]),
  );
  /** Queues whose store has not answered an enqueue yet. */
  const unanswered = new Set<QueueName>();
  /** When the last successful run of each job and payload in this process began. */
  const beganAt = new Map<string, number>();
  const workers: Lasting<Part>[] = [];
  const timers: NodeJS.Timeout[] = [];
  const stopping = new AbortController();
  let closing: Promise<void> | undefined;

  function every(ms: number, where: string, check: () => Promise<void>) {
    let isChecking = false;
    const checkOnce = async () => {
      if (isChecking) return;
      isChecking = true;
      try {
        await check();
      } catch (thrown) {
        onError(where, toError(thrown));
      } finally {
        isChecking = false;
      }
    };
    timers.push(setInterval(() => void checkOnce(), ms).unref());
  }

  function startWorker(name: QueueName) {
    let begun = 0;
    /** The ids of the jobs that this process runs and has not ended or put off. */
    const running = new Set<string>();
    const open = () =>
      backend.openWorker(
        name,
        async (job, token) => {
          const definition = byName.get(job.name);
          if (definition === undefined) throw new Error(`no job is called ${job.name}`);
          begun += 1;
          const key = `${job.name} ${JSON.stringify(job.data)}`;
          const now = clock();
          // A run that began after this job was enqueued has found its rows. Under overload, ticks of one zone would
          // else wait in the queue by the thousand, each with nothing left to do.
          if (
            job.attemptsMade === 0 &&
            (beganAt.get(key) ?? 0) > job.timestamp + (job.opts.delay ?? 0) + CLOCK_SKEW_MS
          )
            return;
          const id = job.id ?? "";
          running.add(id);
          const onEnd = () => void running.delete(id);
          try {
            await runAttempt(definition, job, { token, stopping: stopping.signal, onEnd });
            beganAt.set(key, now);
          } finally {
            onEnd();
          }
        },
        // Deploys kill workers. A stall is not a failure of the job, and the default limit of one stall would drop
        // it.
        {
          concurrency: options.concurrency,
          maxStalledCount: 20,
          lockDuration: lockMs,
          stalledInterval: lockMs,
        },
        (id) => running.has(id),
      );
    const worker = lasting(`worker ${name}`, open);
    workers.push(worker);
    const watch = createWorkerWatch({
      read: () => ({ begun, running: running.size }),
      countWaiting: async () => (await queues.get(name)?.ready())?.getWaitingCount() ?? 0,
      onStopped() {
        onError(`worker ${name}`, new Error("it has stopped taking jobs, another takes its place"));
        worker.replace();
      },
    });
    every(lockMs, `worker ${name}`, watch);
  }

  async function add(
    definition: AnyJob,
    payload: Record<string, unknown>,
    id: string,
    delay: number,
  ): Promise<unknown> {
    const bytes = Buffer.byteLength(JSON.stringify(payload));
    if (bytes > MAX_PAYLOAD_BYTES) throw new Error(`a payload of ${bytes} bytes: it may hold ids only`);
    const opts = { jobId: id, attempts: definition.attempts, ...(delay > 0 ? { delay } : {}) };
    return batches.get(definition.queue)?.({ name: definition.name, data: payload, opts });
  }

  async function checkStore(): Promise<void> {
    // A store that does not answer is reported by the code that uses it.
    const mistake = await backend.findMistake().catch(() => null);
    if (mistake !== null) onError("store", new Error(mistake));
  }

  async function close(graceMs: number): Promise<void> {
    for (const timer of timers) clearInterval(timer);
    // A graceful close has no deadline of its own, and it makes a later forced one wait for it as well.
    const drained = closeAll(workers);
    if ((await within(drained, graceMs)) === "late") {
      stopping.abort(new Error("the service is stopping"));
      await within(drained, graceMs / 2);
    }
    await within(closeAll(queues.values()), graceMs / 2);
    // A stop ends the store next. The parts that are still open fail then, and no outage is reported.
    isClosed = true;
  }

  return {
    async enqueue(job, payload, id, delayMs = 0) {
      const definition = byName.get(job);
      if (definition === undefined) throw new Error(`no job is called ${job}`);
      const { queue } = definition;
      // One unanswered enqueue is enough. Further ones would all be processed at once when the store answers again.
      if (unanswered.has(queue)) return false;
      const added = add(definition, payload, id, delayMs);
      try {
        if ((await within(added, options.enqueueTimeoutMs)) === "done") return true;
        unanswered.add(queue);
        onError(`enqueue ${job}`, new Error(`no answer within ${options.enqueueTimeoutMs} ms`));
        added.catch(() => undefined).finally(() => unanswered.delete(queue));
      } catch (thrown) {
        onError(`enqueue ${job}`, toError(thrown));
      }
      return false;
    },
    startWorkers(names = QUEUES) {
      names.forEach(startWorker);
      void checkStore();
      every(STORE_CHECK_MS, "store", checkStore);
    },
    close: (graceMs) => (closing ??= close(graceMs)),
  };
}

const DEFAULT_WAIT_MS = 60_000;

/**
 * Runs one attempt under the job's own deadline, and converts this service's errors to the queue's. A rejected
 * payload gives up, because the same bytes would be rejected again.
 */
async function runAttempt(
  definition: AnyJob,
  job: Job,
  {
    token,
    stopping,
    onEnd,
  }: { readonly token: string | undefined; readonly stopping: AbortSignal; readonly onEnd: () => void },
): Promise<void> {
  const payload = definition.payload.safeParse(job.data);
  if (!payload.success)
    throw new UnrecoverableError(`payload of ${definition.name}: ${payload.error.message}`);
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(definition.timeoutMs)]);
  try {
    await definition.run(payload.data, signal);
  } catch (thrown) {
    const error = toError(thrown);
    const disposition = readDisposition(error);
    switch (disposition) {
      case undefined:
      case "retry":
        // The queue keeps message and stack, which no erasure reaches.
        throw isFailedQuery(error) ? new Error(messageOf(error)) : error;
      case "give-up":
        throw Object.assign(new UnrecoverableError(messageOf(error)), { cause: error });
      case "wait":
        // A wait is no failure and uses up none of the attempts.
        onEnd();
        await job.moveToDelayed(Date.now() + readWaitMs(error), token);
        throw new DelayedError();
    }
  }
}

/** Reads the disposition by field, not by class, because the errors of the database layer are no ServiceErrors. */
export function readDisposition(error: unknown): Disposition | undefined {
  const found =
    typeof error === "object" && error !== null && "disposition" in error ? error.disposition : null;
  return found === "retry" || found === "give-up" || found === "wait" ? found : undefined;
}

function readWaitMs(error: Error): number {
  return "waitMs" in error && typeof error.waitMs === "number" ? error.waitMs : DEFAULT_WAIT_MS;
}

interface WorkerState {
  /** Jobs this process has begun since it started. */
  readonly begun: number;
  readonly running: number;
}

/**
 * Returns a check that detects a worker that has stopped claiming: in two consecutive checks it had capacity, jobs
 * waited, and it began none in between. Such workers have occurred in several releases of the queue's library, mostly
 * after a reconnect.
 */
export function createWorkerWatch(options: {
  readonly read: () => WorkerState;
  readonly countWaiting: () => Promise<number>;
  readonly onStopped: () => void;
}): () => Promise<void> {
  let idleSince: number | null = null;
  return async () => {
    const before = options.read();
    if (before.running > 0 || (await options.countWaiting()) === 0) {
      idleSince = null;
      return;
    }
    const { begun, running } = options.read();
    if (running > 0 || begun !== before.begun) idleSince = null;
    else if (idleSince === begun) {
      idleSince = null;
      options.onStopped();
    } else idleSince = begun;
  };
}
