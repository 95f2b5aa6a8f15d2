import type { Database } from "../../db/client.ts";
import { type AdmissionQueue, createAdmissionQueue } from "../http/limits/admission-queue.ts";

/** Time limit of the wait. Together with the search's own time limit it is about as long as clients wait. */
const MAX_WAIT_MS = 15_000;

/** Opens the queue with a third of the connections, so that cheap searches, lists and exports always find one. */
export function openAdmissionQueue(
  { pool: { options } }: Pick<Database, "pool">,
  maxWaitMs = MAX_WAIT_MS,
): AdmissionQueue {
  const { max } = options;
  return createAdmissionQueue({
    places: Math.max(1, Math.floor(max / 3)),
    perKey: Math.max(1, max - 2),
    waiting: max * 2,
    maxWaitMs,
  });
}
