import { formatDuration } from "#lib/format.ts";
import { cutText } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";

/** What people or their tools did to the sites, such as a deploy. */
export interface Note {
  readonly atMs: number;
  /** Null: all zones. */
  readonly zoneId: number | null;
  /** Hostile text. */
  readonly text: string;
}

/** What began so soon after a note may have its cause there. */
export const AFTER_NOTE_MS = 30 * MINUTE_MS;
const SHOWN_CHARS = 100;

/**
 * Returns `began 4 min after "deploy 1.4.2"` of the latest note on the zone in the half hour before; null if there is none. A rise
 * is found a window after its begin, so what happened in that window comes before it, too.
 */
export function describeNoteBefore(
  notes: readonly Note[],
  { zoneId, openedAtMs }: { readonly zoneId: number; readonly openedAtMs: number },
): string | null {
  const latest = notes
    .filter((one) => one.zoneId === null || one.zoneId === zoneId)
    .filter(({ atMs }) => atMs <= openedAtMs && openedAtMs - atMs <= AFTER_NOTE_MS)
    .toSorted((a, b) => b.atMs - a.atMs)[0];
  if (latest === undefined) return null;
  const since = openedAtMs - latest.atMs;
  const text = `"${cutText(latest.text, SHOWN_CHARS)}"`;
  return since < MINUTE_MS ? `began with ${text}` : `began ${formatDuration(since)} after ${text}`;
}

/** Returns the sentence that a verdict gives as a reason. */
export function toReason(began: string): string {
  return `It ${began}.`;
}
