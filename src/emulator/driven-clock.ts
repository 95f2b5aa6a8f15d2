import type { Clock } from "#lib/clock.ts";

/** Returns a clock that tests can stop, set and move. It follows its base until they do. */
export function createDrivenClock(base: Clock) {
  let offsetMs = 0;
  let stoppedAt: number | undefined;
  return {
    now: () => stoppedAt ?? base() + offsetMs,
    /** Stops the clock at a time; `null` makes it follow the base clock again. */
    set(timeMs: number | null): void {
      stoppedAt = timeMs ?? undefined;
      offsetMs = 0;
    },
    /** Advances the clock. A stopped clock stays stopped. */
    advance(ms: number): void {
      if (stoppedAt === undefined) offsetMs += ms;
      else stoppedAt += ms;
    },
  };
}
