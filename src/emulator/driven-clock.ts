import type { Clock } from "../lib/clock.ts";

/** A clock that tests can stop, set and move; it follows its base until they do. */
export function createDrivenClock(base: Clock) {
  let offsetMs = 0;
  let stoppedAt: number | undefined;
  return {
    now: () => stoppedAt ?? base() + offsetMs,
    /** Stops at a time; `null` follows the base clock again. */
    set(timeMs: number | null): void {
      stoppedAt = timeMs ?? undefined;
      offsetMs = 0;
    },
    /** Moves on; a stopped clock stays stopped. */
    advance(ms: number): void {
      if (stoppedAt === undefined) offsetMs += ms;
      else stoppedAt += ms;
    },
  };
}
