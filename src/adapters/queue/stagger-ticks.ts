/** Number of jobs of one tick that are enqueued together. */
const TOGETHER = 8;

/**
 * Returns the delay of the job with this index, in whole seconds. The jobs of many zones are spread over the time until the
 * tick's next run, so that the last zone does not wait for the calls of all others.
 */
export function staggerTicks(index: number, count: number, untilNextMs: number): number {
  const groups = Math.ceil(count / TOGETHER);
  const group = Math.floor(index / TOGETHER);
  return Math.floor((group * untilNextMs) / groups / 1_000) * 1_000;
}

/**
 * Returns the items of this turn, of which each may take only so many. Over the turns, which are numbered from 1, every item
 * comes equally often.
 */
export function takeTurn<Item>(items: readonly Item[], most: number, turn: number): readonly Item[] {
  if (items.length <= most) return items;
  const first = ((turn - 1) * most) % items.length;
  return [...items.slice(first), ...items.slice(0, first)].slice(0, most);
}
