export type EndedBy = "timeout" | "caller" | "closed";

export interface Deadline {
  /** Aborted by the first of: the time is up, the caller's signal, the transport closing. */
  readonly signal: AbortSignal;
  /** Why it was aborted; null while it was not. */
  endedBy(): EndedBy | null;
  /** Releases timer and listeners; call it when the work is over. */
  release(): void;
}

/**
 * The total time of one call, retries and pauses included. Not AbortSignal.timeout and AbortSignal.any: their timer and
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
  const timer = timeoutMs === null ? undefined : setTimeout(() => end("timeout"), timeoutMs);
  caller?.addEventListener("abort", onCaller, { once: true });
  closing.addEventListener("abort", onClosing, { once: true });
  if (caller?.aborted === true) onCaller();
  if (closing.aborted) onClosing();
  return {
    signal: controller.signal,
    endedBy: () => endedBy,
    release() {
      clearTimeout(timer);
      caller?.removeEventListener("abort", onCaller);
      closing.removeEventListener("abort", onClosing);
    },
  };
}
