import { showTime } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, type Span } from "#model/horizon.ts";
import { SETTLE_MS } from "#stages/coverage/settle.ts";

/**
 * Returns the whole hours of a span that the platform still has and that get no more events, or null. `notes` names the
 * hours that are left out.
 */
export function findAskable(now: number, { from, to }: Span): { askable: Span | null; notes: string[] } {
  const horizon = horizonAt(now);
  const first = Math.max(from, Math.ceil(horizon / HOUR_MS) * HOUR_MS);
  const settled = now - SETTLE_MS;
  const last = Math.min(to, settled - (settled % HOUR_MS));
  const notes: string[] = [];
  if (from < first)
    notes.push(`before ${showTime(first)} UTC: not compared, the platform has forgotten these hours`);
  if (to > last) notes.push(`after ${showTime(last)} UTC: not compared, events may still appear`);
  return { askable: first < last ? { from: first, to: last } : null, notes };
}
