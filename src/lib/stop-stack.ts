import { toError } from "./errors.ts";
import { within } from "./waiting.ts";

type Teardown = () => unknown;

/** The time that a part needs to stop. A database needs longer. */
const PART_MS = 250;

/**
 * Returns a stack that stops parts in reverse order of construction. A part registers its teardown on the line after
 * it was built, so a start that fails half-way unwinds like a normal stop. `stop` is idempotent, and one part's
 * failure does not keep the others running. `onStopped` gets the duration of each part's stop. All parts together take at
 * most `budgetMs`. A part may take what the parts after it do not need, at least half of the time that is left. If it has not
 * stopped by then, it is reported and left behind.
 */
export function createStopStack(
  onError: (name: string, error: Error) => void,
  onStopped: (name: string, ms: number) => void = () => undefined,
  budgetMs = 2_147_483_647,
) {
  const entries: { name: string; teardown: Teardown }[] = [];
  let stopping: Promise<void> | undefined;

  const unwind = async () => {
    const deadline = performance.now() + budgetMs;
    for (let entry = entries.pop(); entry !== undefined; entry = entries.pop()) {
      const since = performance.now();
      const leftMs = deadline - since;
      const shareMs = Math.max(1, Math.round(Math.max(leftMs / 2, leftMs - entries.length * PART_MS)));
      try {
        const stopped = Promise.resolve().then(entry.teardown);
        if ((await within(stopped, shareMs)) === "late") throw new Error(`not stopped in ${shareMs} ms`);
        onStopped(entry.name, Math.round(performance.now() - since));
      } catch (thrown) {
        onError(entry.name, toError(thrown));
      }
    }
  };

  return {
    defer(name: string, teardown: Teardown): void {
      entries.push({ name, teardown });
    },
    stop(): Promise<void> {
      stopping ??= unwind();
      return stopping;
    },
  };
}

export type StopStack = ReturnType<typeof createStopStack>;
