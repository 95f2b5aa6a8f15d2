/** Which spans are forwarded next, and whether they arrived. */

import type { DeliveryError } from "#delivery/receivers/delivery-error.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type Span, startOfHour } from "#model/horizon.ts";
import type { Arrival } from "#model/kinds.ts";
import { keyOfReceipt } from "#model/waf-event.ts";

/** A minute whose events have changed. */
interface ChangedMinute {
  /** Epoch ms. */
  readonly minute: number;
  readonly seq: number;
}

/** The changed minutes up to `seq`, as spans of adjacent minutes, each within one hour. */
interface PlannedSpans {
  readonly spans: readonly Span[];
  /** Null: no minute can be read yet. */
  readonly seq: number | null;
}

/**
 * Returns which of the changed minutes, in their order, can be read: those before the first minute that runs or ended less
 * than `waitMs` ago. A busy minute changes with every poll, and its events are all read each time. A minute of the future is
 * read now, and after each of its changes: an event with a false time must not delay the others until then.
 */
export function planSpans(
  changes: readonly ChangedMinute[],
  { nowMs, waitMs }: { readonly nowMs: number; readonly waitMs: number },
): PlannedSpans {
  const early = changes.findIndex(({ minute }) => minute <= nowMs && nowMs < minute + MINUTE_MS + waitMs);
  const due = early === -1 ? changes : changes.slice(0, early);
  const spans: { from: number; to: number }[] = [];
  for (const minute of due.map((change) => change.minute).sort((one, other) => one - other)) {
    const last = spans.at(-1);
    if (last?.to === minute && startOfHour(last.from) === startOfHour(minute)) last.to += MINUTE_MS;
    else spans.push({ from: minute, to: minute + MINUTE_MS });
  }
  return { spans, seq: due.at(-1)?.seq ?? null };
}

/** Returns the whole hour as a span. */
export function hourSpan(startsAt: number): Span {
  return { from: startsAt, to: startsAt + HOUR_MS };
}

/** An event on its way to a destination. */
export interface Sifted<Event> {
  readonly event: Event;
  readonly receipt: string;
  /** True if the destination has acknowledged the event with other values. */
  readonly isRevised: boolean;
}

interface SiftedPage<Event> {
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

/** The counts of a decided hour at a destination. */
interface ArrivalCounts {
  /** Stored events that pass the destination's filter. */
  readonly stored: number;
  readonly acknowledged: number;
  readonly refused: number;
  /** The destination's own count; null if it cannot be asked. */
  readonly counted: number | null;
  /** True if the whole hour was read since this number of stored events was counted. */
  readonly isRead: boolean;
  readonly wasSentAgain: boolean;
}

/**
 * Returns the outcome of the counts:
 *
 * | acknowledged and refused | the destination counts | before | then |
 * |---|---|---|---|
 * | not all that is stored | - | the whole hour was not read | read-again |
 * | not all that is stored | - | read | differs |
 * | all | at least what it acknowledged, or cannot be asked | - | arrived |
 * | all | less | not sent again | send-again |
 * | all | less | sent again | differs |
 *
 * A destination may count more: an event that the platform withdrew, or that was erased here, stays there.
 */
export function judgeArrival(counts: ArrivalCounts): Exclude<Arrival, "open"> | "read-again" | "send-again" {
  const { stored, acknowledged, refused, counted, isRead, wasSentAgain } = counts;
  if (acknowledged + refused !== stored) return isRead ? "differs" : "read-again";
  if (counted === null || counted >= acknowledged) return "arrived";
  return wasSentAgain ? "differs" : "send-again";
}

const FIRST_MS = 10_000;
const LONGEST_MS = 5 * 60_000;
/** A token or an address that a person has to change is tried again this often. */
const REFUSED_MS = 5 * 60_000;

/** Returns how long a destination is left alone after its nth failure in a row. */
export function retryPause(
  { disposition, waitMs }: Pick<DeliveryError, "disposition" | "waitMs">,
  failures: number,
): number {
  if (disposition === "give-up") return REFUSED_MS;
  return Math.min(Math.max(waitMs ?? 0, FIRST_MS * 2 ** Math.min(failures - 1, 10)), LONGEST_MS);
}
