import { keyOfReceipt } from "#model/waf-event.ts";

/** An event on its way to a destination. */
export interface Sifted<Event> {
  readonly event: Event;
  readonly receipt: string;
  /** True if the destination has acknowledged the event with other values. */
  readonly isRevised: boolean;
}

export interface SiftedPage<Event> {
  readonly toSend: readonly Sifted<Event>[];
  /** Events that may still become complete. */
  readonly waiting: readonly Event[];
  /** Number of events that the destination has acknowledged with their present values. */
  readonly acknowledged: number;
}

interface Sieve<Event> {
  readonly toReceipt: (event: Event) => string;
  /** Receipts of what the destination has acknowledged around these events, oldest first. */
  readonly receipts: readonly string[];
  /** Receipts of events that it has refused. */
  readonly refused: readonly string[];
  readonly mustWait: (event: Event) => boolean;
}

/** Returns which of some stored events have to be sent: those whose present values have no receipt and were not refused. */
export function siftEvents<Event>(
  events: readonly Event[],
  { toReceipt, receipts, refused, mustWait }: Sieve<Event>,
): SiftedPage<Event> {
  const known = new Map(receipts.map((receipt) => [keyOfReceipt(receipt), receipt]));
  const isRefused = new Set(refused);
  const toSend: Sifted<Event>[] = [];
  const waiting: Event[] = [];
  let acknowledged = 0;
  for (const event of events) {
    const receipt = toReceipt(event);
    const before = known.get(keyOfReceipt(receipt));
    if (before === receipt) acknowledged += 1;
    else if (isRefused.has(receipt)) continue;
    else if (mustWait(event)) waiting.push(event);
    else toSend.push({ event, receipt, isRevised: before !== undefined });
  }
  return { toSend, waiting, acknowledged };
}
