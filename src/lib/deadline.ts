export type EndedBy = "timeout" | "caller" | "closed";

export interface Deadline {
  /** Aborts at the first of: the end of the time, the caller's signal, the closing of the transport. */
  readonly signal: AbortSignal;
  /** Returns why the signal was aborted; null while it was not. */
  endedBy(): EndedBy | null;
  /** Runs `wait` with the clock stopped, because its time does not count. Caller and transport can still abort. */
  suspend(wait: () => Promise<void>): Promise<void>;
  /** Releases timer and listeners; call it at the end of the work. */
  release(): void;
}

/**
 * Starts the total time of one call, including retries and pauses, without the wait for the request budget.
 * AbortSignal.timeout and AbortSignal.any are not used, because their timer and links to a caller's long-lived signal
 * would outlast thousands of short calls.
 */
export function startDeadline(
  timeoutMs: number | null,
  caller: AbortSignal | undefined,
  closing: AbortSignal,
): Deadline {
  const controller = new AbortController();
  let endedBy: EndedBy | null = null;
  const end = (by: EndedBy) => {
    endedBy ??= by;
    controller.abort(new Error(`ended by ${by}`));
  };
  const onCaller = () => end("caller");
  const onClosing = () => end("closed");
  let timer: NodeJS.Timeout | undefined;
  let remainingMs = timeoutMs;
  let runningSince = 0;
  const run = () => {
    if (remainingMs === null) return;
    runningSince = performance.now();
    timer = setTimeout(() => end("timeout"), Math.max(remainingMs, 1));
  };
  const hold = () => {
    clearTimeout(timer);
    if (remainingMs !== null) remainingMs -= performance.now() - runningSince;
  };
  run();
  caller?.addEventListener("abort", onCaller, { once: true });
  closing.addEventListener("abort", onClosing, { once: true });
  if (caller?.aborted === true) onCaller();
  if (closing.aborted) onClosing();
  return {
    signal: controller.signal,
    endedBy: () => endedBy,
    async suspend(wait) {
      hold();
      try {
        await wait();
      } finally {
        run();
      }
    },
    release() {
      clearTimeout(timer);
      caller?.removeEventListener("abort", onCaller);
      closing.removeEventListener("abort", onClosing);
    },
  };
}
