/**
 * Returns a function that runs `fn` once at a time. A call during a run waits for its end. A call while another one
 * waits does nothing, because the waiting one has not read anything yet.
 */
export function oneAtATime<Args extends readonly unknown[]>(
  fn: (...args: Args) => Promise<void>,
): (...args: Args) => Promise<void> {
  let running: Promise<void> | null = null;
  let isWaiting = false;
  const end = () => {
    running = null;
  };
  return async (...args) => {
    if (isWaiting) return;
    if (running !== null) {
      isWaiting = true;
      await running;
      isWaiting = false;
    }
    const run = fn(...args);
    running = run.then(end, end);
    await run;
  };
}
