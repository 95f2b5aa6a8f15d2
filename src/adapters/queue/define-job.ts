import type { z } from "zod";

/** Queues by urgency, so that a slow channel does not delay ingest. A limiter applies to a whole queue. */
export const QUEUES = ["ingest", "derive", "alerts"] as const;
export type QueueName = (typeof QUEUES)[number];

/** Reason why a run without its lease did nothing. */
export const LEASE_TAKEN = "another run of this job is in progress";

/** One unit of background work. `run` must be safe to run twice and at the same time as a copy of itself. */
export interface JobDefinition<Payload> {
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
