/** When a custom condition held, by its counts of minutes. The service and the back-test decide by the same function. */
import { type CustomCondition, holds } from "#model/custom-condition.ts";
import type { ZoneView } from "./zone-view.ts";

/** The count of a condition in a minute. Minutes are numbered from the epoch. Those without an event are left out. */
export interface MinuteCount {
  readonly minute: number;
  readonly count: number;
  /** Names of the different values, for a condition that counts these. */
  readonly values?: readonly number[] | null;
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
 * window before the first whole one is judged: what came before `from` is not known.
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
    if (holds(condition, count)) {
      open = { from: open?.from ?? at, to: null, lastActive, peak: Math.max(open?.peak ?? 0, count), count };
    } else if (open !== null) {
      firings.push({ ...open, to: at, count });
      open = null;
    }
  }
  return open === null ? firings : [...firings, open];
}

/**
 * Returns the minutes of [from, to) in hours whose events are not all known. Nothing can be said to be absent there, so each counts as
 * one with an event. The hour of `to` is left out.
 */
export function unknownMinutes(
  { isUnknownHour }: Pick<ZoneView, "isUnknownHour">,
  from: number,
  to: number,
): MinuteCount[] {
  const unknown: MinuteCount[] = [];
  for (let minute = from; minute < Math.floor(to / 60) * 60; minute += 1)
    if (isUnknownHour(Math.floor(minute / 60))) unknown.push({ minute, count: 1 });
  return unknown;
}

function createWindow(isDistinct: boolean) {
  let sum = 0;
  const values = new Map<number, number>();
  return {
    count: () => (isDistinct ? values.size : sum),
    add({ count, values: added }: MinuteCount) {
      sum += count;
      for (const one of added ?? []) values.set(one, (values.get(one) ?? 0) + 1);
    },
    remove({ count, values: removed }: MinuteCount) {
      sum -= count;
      for (const one of removed ?? []) {
        const left = (values.get(one) ?? 1) - 1;
        if (left > 0) values.set(one, left);
        else values.delete(one);
      }
    },
  };
}
