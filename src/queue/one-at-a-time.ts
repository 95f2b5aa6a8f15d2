/**
 * Returns a function that runs `fn` once at a time. A call during a run waits for its end. A call while another one
 * waits does nothing, because the waiting one has not read anything yet.
 */
export function oneAtATime<Args extends readonly unknown[]>(
  fn: (...args: Args) => Promise<void>,
): (...args: Args) => Promise<void> {
  let running: Promise<unknown> = Promise.resolve();
  let isRunning = false;
  let isWaiting = false;
  return async (...args) => {
    if (isWaiting) return;
    if (isRunning) {
      isWaiting = true;
      await running;
      isWaiting = false;
    }
    isRunning = true;
    const run = fn(...args).finally(() => {
      isRunning = false;
    });
    running = run.catch(() => undefined);
    await run;
  };
}
