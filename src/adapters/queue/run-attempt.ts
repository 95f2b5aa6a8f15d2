import { DelayedError, type Job, UnrecoverableError } from "bullmq";
import { type Disposition, toError } from "#lib/errors.ts";
import { isFailedQuery, messageOf } from "#lib/message-of.ts";
import type { AnyJob } from "./define-job.ts";

const DEFAULT_WAIT_MS = 60_000;

/**
 * Runs one attempt under the job's own deadline, and converts this service's errors to the queue's. A rejected
 * payload gives up, because the same bytes would be rejected again.
 */
export async function runAttempt(
  definition: AnyJob,
  job: Job,
  token: string | undefined,
  stopping: AbortSignal,
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
