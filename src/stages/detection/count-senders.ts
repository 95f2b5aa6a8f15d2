import { isNoVisitor } from "#model/ip-address.ts";
import { toSourceAddress } from "./sources/source-event.ts";

/** Share of a rule's events that its main senders send together. */
const MAIN_SHARE = 0.8;

/** The addresses of a rule's events; both numbers are 0 if they are not known. */
export interface Senders {
  readonly addresses: number;
  /** The fewest addresses that send four fifths of the events. */
  readonly main: number;
}

/**
 * Returns how many addresses send a rule's events, from the events of each IP address. A broken client hides among the few
 * events of others, so not only the different addresses are counted, but those that make the spike. If more than a fifth of
 * the events have an address that is no visitor's, such as `0.0.0.0`, the addresses are not known.
 */
export function countSenders(found: readonly { readonly ip: string; readonly events: number }[]): Senders {
  const byAddress = new Map<string, number>();
  let all = 0;
  for (const { ip, events } of found) {
    all += events;
    if (isNoVisitor(ip)) continue;
    const address = toSourceAddress(ip);
    byAddress.set(address, (byAddress.get(address) ?? 0) + events);
  }
  const counts = [...byAddress.values()].sort((a, b) => b - a);
  const known = counts.reduce((sum, count) => sum + count, 0);
  if (known < MAIN_SHARE * all) return { addresses: 0, main: 0 };
  const wanted = MAIN_SHARE * known;
  let [main, sum] = [0, 0];
  for (; main < counts.length && sum < wanted; main += 1) sum += counts[main] as number;
  return { addresses: counts.length, main };
}
