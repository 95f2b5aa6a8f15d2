/**
 * Returns a function that combines calls: `fn` runs `delayMs` after the first call, and later calls until then are
 * part of it. The caller gets no outcome. A call may be lost with its process, and a failure of `fn` is ignored.
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
