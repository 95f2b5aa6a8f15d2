import type { EventRoute } from "#model/kinds.ts";
import { AGREE_LONG_MS } from "#stages/coverage/hour-proof.ts";
import type { QuarantinedEntry } from "./read-page.ts";

/** The reason for quarantining an entry of an answer that shows none of the zone's known events. */
export const HELD_BACK = "held back: the answer shows none of the zone's known events";

/** An answer that was held back this long ago and that the platform still shows is stored. */
export const BELIEVE_AFTER_MS = AGREE_LONG_MS;
/** Entries are dropped after this time. By then the platform has shown them again, and they were stored, or it has not. */
export const DROP_AFTER_MS = 2 * AGREE_LONG_MS;

/** Returns raw entries as they are quarantined when their answer is held back. */
export function toHeldBack(
  raws: readonly Buffer[],
  { route, day, receivedAt }: { route: EventRoute; day: string | null; receivedAt: number },
): (QuarantinedEntry & { readonly receivedAt: number })[] {
  return raws.map((raw) => ({ route, day, reason: HELD_BACK, raw, receivedAt }));
}
