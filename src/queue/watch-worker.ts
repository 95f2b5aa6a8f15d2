export interface WorkerState {
  /** Jobs this process has begun since it started. */
  readonly begun: number;
  readonly running: number;
}

/**
 * Tells a worker that has stopped claiming: asked twice in a row, it had room, jobs waited, and it began none in between.
 * Such workers have come back in one release of the queue's library after the other, mostly after a reconnect.
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
