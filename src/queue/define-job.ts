import type { z } from "zod";

/** Queues by urgency: a slow channel must not hold up ingest, and a limiter would act on a whole queue. */
export const QUEUES = ["ingest", "derive", "alerts"] as const;
export type QueueName = (typeof QUEUES)[number];

/** One unit of background work. `run` must be safe to run twice and at the same time as a copy of itself. */
export interface JobDefinition<Payload> {
  readonly name: string;
  readonly queue: QueueName;
  /** Ids only: payloads show in dashboards and failure reasons. */
  readonly payload: z.ZodType<Payload>;
  /** Attempts the queue makes; what the rows still lack after that is found by the sweeper. */
  readonly attempts: number;
  readonly timeoutMs: number;
  run(payload: Payload, signal: AbortSignal): Promise<void>;
}

/** A job whose payload type only its own schema knows. */
export type AnyJob = JobDefinition<never>;

export function defineJob<Payload>(job: JobDefinition<Payload>): AnyJob {
  return job as unknown as AnyJob;
}
