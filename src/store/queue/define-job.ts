/** What a job is, and how calls of the same job share one run. */
import type { z } from "zod";
import { untilAborted } from "#lib/waiting.ts";

/** Queues by urgency, so that a slow channel does not delay ingest. A limiter applies to a whole queue. */
export const QUEUES = ["ingest", "derive", "alerts"] as const;
export type QueueName = (typeof QUEUES)[number];

/** Reason why a run without its lease did nothing. */
export const LEASE_TAKEN = "another run of this job is in progress";

/** One unit of background work. `run` must be safe to run twice and at the same time as a copy of itself. */
interface JobDefinition<Payload> {
  readonly name: string;
  readonly queue: QueueName;
  /** Contains ids only, because dashboards and failure reasons show payloads. */
  readonly payload: z.ZodType<Payload>;
  /** Number of attempts by the queue. The sweep finds work that is still unfinished afterwards. */
  readonly attempts: number;
  readonly timeoutMs: number;
  /** Returns why there was nothing to do, if there was nothing to do. */
  run(payload: Payload, signal: AbortSignal): Promise<string | void>;
}

/** A job whose payload type is known only to its own schema. */
export type AnyJob = JobDefinition<never>;

export function defineJob<Payload>(job: JobDefinition<Payload>): AnyJob {
  return job as unknown as AnyJob;
}

type Run<Payload> = (payload: Payload, signal: AbortSignal) => Promise<string | void>;

/**
 * Returns a function that runs `run` once at a time. A call during a run waits for its end. A call while another one
 * waits does nothing, because the waiting one has not read anything yet. A run that has not ended at its deadline
 * no longer counts: a connection that the network has dropped may never answer.
 */
export function oneAtATime<Payload>(run: Run<Payload>): Run<Payload> {
  let running: Promise<void> | null = null;
  let isWaiting = false;
  return async (payload, signal) => {
    if (isWaiting) return "another run waits to begin";
    if (running !== null) {
      isWaiting = true;
      await running;
      isWaiting = false;
    }
    const ended = run(payload, signal);
    const end = () => {
      running = null;
    };
    running = untilAborted(ended, signal).then(end, end);
    return ended;
  };
}

/**
 * Returns a function that combines calls: `fn` runs `delayMs` after the first call, and later calls until then are
 * part of it. The caller gets no outcome. A call may be lost with its process, and a failure of `fn` is ignored.
 */
export function coalesceCalls(fn: () => unknown, delayMs: number): () => void {
  let timer: NodeJS.Timeout | null = null;
  const run = async () => fn();
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      run().catch(() => undefined);
    }, delayMs).unref();
  };
}
