import type { Database } from "#db/client.ts";
import { type AdmissionQueue, createAdmissionQueue } from "#faces/http/limits/admission-queue.ts";

/** Time limit of the wait. Together with the search's own time limit it is about as long as clients wait. */
const MAX_WAIT_MS = 15_000;
/** A quarter of a machine with two cores. */
const CPU_MS_PER_MINUTE = 30_000;

/**
 * Opens the queue. Quick work gets half of the connections, so that one key can run two requests at a time. Long work
 * gets a third.
 */
export function openAdmissionQueue(
  { pool: { options } }: Pick<Database, "pool">,
  { maxWaitMs = MAX_WAIT_MS, cpuMsPerMinute = CPU_MS_PER_MINUTE } = {},
): AdmissionQueue {
  const { max } = options;
  return createAdmissionQueue({
    places: { quick: Math.max(3, Math.floor(max / 2)), long: Math.max(2, Math.floor(max / 3)) },
    perKey: { quick: max * 2, long: Math.max(2, max - 2) },
    maxWaitMs,
    cpuMsPerMinute,
  });
}
