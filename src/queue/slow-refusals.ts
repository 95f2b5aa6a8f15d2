import { setTimeout as delay } from "node:timers/promises";
import type { IQueueBackend } from "bullmq";

const PAUSE_MS = 1_000;

/**
 * BullMQ waits after a lost connection, but asks a store that answers with an error (no right, no memory, no disk, read-only)
 * again at once, ten thousand times a second, and tells of each. So such an answer is passed on late.
 */
export function slowRefusals<B extends IQueueBackend>(backend: B): B {
  const moveToActive = backend.moveToActive.bind(backend);
  const waitForJob = backend.waitForJob.bind(backend);
  backend.moveToActive = (...given) => late(moveToActive(...given));
  backend.waitForJob = (...given) => late(waitForJob(...given));
  return backend;
}

async function late<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    await delay(PAUSE_MS);
    throw thrown;
  }
}
