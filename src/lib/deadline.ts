export type EndedBy = "timeout" | "caller" | "closed";

export interface Deadline {
  /** Aborted by the first of: the time is up, the caller's signal, the transport closing. */
  readonly signal: AbortSignal;
  /** Why it was aborted; null while it was not. */
  endedBy(): EndedBy | null;
  /** Runs `wait` with the clock stopped: its time is not the call's. Caller and transport still end it. */
  suspend(wait: () => Promise<void>): Promise<void>;
  /** Releases timer and listeners; call it when the work is over. */
  release(): void;
}

/**
 * The total time of one call, retries and pauses included, waiting for the request budget not. Not AbortSignal.timeout and AbortSignal.any: their timer and
 * links to a caller's long-lived signal would outlast thousands of short calls.
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
