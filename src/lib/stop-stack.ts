import { toError } from "./errors.ts";

type Teardown = () => unknown;

/**
 * Returns a stack that stops parts in reverse order of construction. A part registers its teardown on the line after
 * it was built, so a start that fails half-way unwinds like a normal stop. `stop` is idempotent, and one part's
 * failure does not keep the others running. `onStopped` gets the duration of each part's stop.
 */
export function createStopStack(
  onError: (name: string, error: Error) => void,
  onStopped: (name: string, ms: number) => void = () => undefined,
) {
  const entries: { name: string; teardown: Teardown }[] = [];
  let stopping: Promise<void> | undefined;

  const unwind = async () => {
    for (let entry = entries.pop(); entry !== undefined; entry = entries.pop()) {
      const since = performance.now();
      try {
        await entry.teardown();
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
