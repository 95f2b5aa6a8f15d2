import { setTimeout as delay } from "node:timers/promises";
import type { IQueueBackend } from "bullmq";

const PAUSE_MS = 1_000;

/**
 * Returns the backend with delayed errors. BullMQ waits after a lost connection, but retries at once, ten thousand
 * times a second, if the store answers with an error (no right, no memory, no disk, read-only), and logs each. So
 * such an error is passed on after a delay.
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
