import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type Span, startOfHour } from "#model/horizon.ts";

/** A minute whose events have changed. */
export interface ChangedMinute {
  /** Epoch ms. */
  readonly minute: number;
  readonly seq: number;
}

/** The changed minutes up to `seq`, as spans of adjacent minutes, each within one hour. */
export interface PlannedLooks {
  readonly spans: readonly Span[];
  /** Null: no minute can be looked at yet. */
  readonly seq: number | null;
}

/**
 * Returns what of the changed minutes, in their order, can be looked at: the ones before the first that runs or ended less
 * than `waitMs` ago. A busy minute changes with every poll, and each look reads all of its events. A minute of the future is
 * looked at now, and after each of its changes: an event with a false time must not hold back the others until then.
 */
export function planLooks(
  changes: readonly ChangedMinute[],
  { nowMs, waitMs }: { readonly nowMs: number; readonly waitMs: number },
): PlannedLooks {
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
