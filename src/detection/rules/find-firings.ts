/** When a custom condition held, by its counts of minutes. The service and the back-test decide by the same function. */
import { MINUTE_MS } from "#lib/units.ts";
import { type CustomCondition, holds } from "#model/custom-condition.ts";
import { readThrough, viewZone, type ZoneHour } from "./zone-view.ts";

/** The count of a condition in a minute. Minutes are numbered from the epoch. Those without an event are left out. */
export interface MinuteCount {
  readonly minute: number;
  readonly count: number;
  /** Names of the different values, for a condition that counts these. */
  readonly values?: readonly number[] | null;
  /** True: the events of the minute are not all known. */
  readonly isUnknown?: true;
}

/** A time in which a condition held. */
export interface Firing {
  /** The first minute whose window let the condition hold, and the first one whose window does not; null while it lasts. */
  readonly from: number;
  readonly to: number | null;
  /** The last minute with something to count. */
  readonly lastActive: number;
  /** The largest count of a window, and that of the last one. */
  readonly peak: number;
  readonly count: number;
}

type Counted = Pick<CustomCondition, "moreThan" | "distinct" | "withinMinutes">;

/**
 * Returns when a condition held in the minutes [from, to), in order. A minute's window ends with it. Without events no
 * window before the first whole one is judged: what came before `from` is not known. An absence does not begin while its window has
 * an unknown minute, and only an event ends it.
 */
export function findFirings(
  minutes: readonly MinuteCount[],
  condition: Counted,
  { from, to }: { readonly from: number; readonly to: number },
): Firing[] {
  const { withinMinutes, moreThan } = condition;
  const ordered = minutes.filter(({ minute }) => minute < to).toSorted((a, b) => a.minute - b.minute);
  const window = createWindow(condition.distinct !== null);
  const firings: Firing[] = [];
  let open = null as Firing | null;
  // A window changes only where a minute enters or leaves it.
  const leaves = ordered.map(({ minute }) => minute + withinMinutes);
  const first = moreThan === null ? from + withinMinutes - 1 : from;
  const moments = new Set([first, ...ordered.map(({ minute }) => minute), ...leaves]);
  let [entered, left] = [0, 0];
  for (const at of [...moments].toSorted((a, b) => a - b)) {
    for (let next = ordered[entered]; next !== undefined && next.minute <= at; next = ordered[++entered])
      window.add(next);
    for (
      let old = ordered[left];
      old !== undefined && old.minute <= at - withinMinutes;
      old = ordered[++left]
    )
      window.remove(old);
    if (at < first || at >= to) continue;
    const count = window.count();
    const lastActive = moreThan === null ? at : (ordered[entered - 1]?.minute ?? at);
    if (holds(condition, count) && (open !== null || window.isKnown())) {
      open = { from: open?.from ?? at, to: null, lastActive, peak: Math.max(open?.peak ?? 0, count), count };
    } else if (open !== null) {
      firings.push({ ...open, to: at, count });
      open = null;
    }
  }
  return open === null ? firings : [...firings, open];
}

/**
 * Returns the end of a zone's known minutes, and before it the minutes of hours that are not known, in which nothing can be said to be
 * absent; null if the last hour, or the last `within` minutes, were not read. `hours` begin an hour before `fromMs`.
 */
export function viewSilence(
  hours: readonly ZoneHour[],
  { fromMs, nowMs, within }: { readonly fromMs: number; readonly nowMs: number; readonly within?: number },
): { readonly through: number; readonly unknown: readonly MinuteCount[] } | null {
  const view = viewZone(hours, nowMs);
  const through = readThrough(view, nowMs, within);
  if (through === null) return null;
  const unknown: MinuteCount[] = [];
  for (let minute = Math.floor(fromMs / MINUTE_MS); minute < Math.floor(through / 60) * 60; minute += 1)
    if (view.isUnknownHour(Math.floor(minute / 60))) unknown.push({ minute, count: 0, isUnknown: true });
  return { through, unknown };
}

function createWindow(isDistinct: boolean) {
  let sum = 0;
  let unknown = 0;
  const values = new Map<number, number>();
  return {
    count: () => (isDistinct ? values.size : sum),
    isKnown: () => unknown === 0,
    add({ count, values: added, isUnknown }: MinuteCount) {
      sum += count;
      unknown += Number(isUnknown ?? false);
      for (const one of added ?? []) values.set(one, (values.get(one) ?? 0) + 1);
    },
    remove({ count, values: removed, isUnknown }: MinuteCount) {
      sum -= count;
      unknown -= Number(isUnknown ?? false);
      for (const one of removed ?? []) {
        const left = (values.get(one) ?? 1) - 1;
        if (left > 0) values.set(one, left);
        else values.delete(one);
      }
    },
  };
}
