/** What the main senders of a rule send together. */
const MAIN_SHARE = 0.8;

/** The addresses of a rule's events. */
export interface Senders {
  readonly addresses: number;
  /** The fewest addresses that send four fifths of the events. */
  readonly main: number;
}

/**
 * Returns how many addresses send a rule's events, from the number of events of each. A broken client hides among the few
 * events of others, so not only the different addresses are counted, but those that make the spike.
 */
export function countSenders(events: Iterable<number>): Senders {
  const counts = [...events].sort((a, b) => b - a);
  const wanted = MAIN_SHARE * counts.reduce((sum, count) => sum + count, 0);
  let [main, sum] = [0, 0];
  for (; main < counts.length && sum < wanted; main += 1) sum += counts[main] as number;
  return { addresses: counts.length, main };
}
