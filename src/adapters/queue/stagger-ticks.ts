/** So many ticks of one job may fall due together; one statement claims them, and one enqueues them. */
const TOGETHER = 8;

/**
 * Returns how long after the beginning of its period the tick with this index falls due, in whole seconds. The ticks of
 * many zones are spread over the period, so that the zone whose tick is last does not wait for the calls of all others.
 */
export function staggerTicks(index: number, count: number, everyMs: number): number {
  const groups = Math.ceil(count / TOGETHER);
  const group = Math.floor(index / TOGETHER);
  return Math.floor((group * everyMs) / groups / 1_000) * 1_000;
}
