/**
 * Turns many calls into few: `fn` runs `delayMs` after the first call, and calls until then are part of it. Nothing is
 * promised to the caller; a nudge may be lost with its process.
 */
export function createNudge(fn: () => unknown, delayMs: number): () => void {
  let timer: NodeJS.Timeout | null = null;
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      fn();
    }, delayMs).unref();
  };
}
