import type { StoreIo } from "./store-command.ts";

/** Runs `fn` with a signal that aborts on Ctrl-C, on SIGTERM, and with `interrupted`. */
export async function untilStopped<T>(
  { interrupted }: Pick<StoreIo, "interrupted">,
  fn: (signal: AbortSignal) => Promise<T>,
  reason = "stopped",
): Promise<T> {
  const stopping = new AbortController();
  const stop = () => stopping.abort(new Error(reason));
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    const signals = [stopping.signal, ...(interrupted === undefined ? [] : [interrupted])];
    return await fn(AbortSignal.any(signals));
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
  }
}
