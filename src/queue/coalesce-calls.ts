/**
 * Turns many calls into few: `fn` runs `delayMs` after the first call, and calls until then are part of it. Nothing is
 * promised to the caller: a nudge may be lost with its process, and one that fails is as good as lost.
 */
export function coalesceCalls(fn: () => unknown, delayMs: number): () => void {
  let timer: NodeJS.Timeout | null = null;
  const run = async () => fn();
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      run().catch(() => undefined);
    }, delayMs).unref();
  };
}
