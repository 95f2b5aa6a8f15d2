export interface WorkerState {
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
