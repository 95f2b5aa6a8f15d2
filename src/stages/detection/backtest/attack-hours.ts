import { LONGEST_WINDOW } from "../thresholds/windows.ts";

/** A spike that a person confirmed as an attack. Minutes since the epoch; times are the ends of minutes. */
export interface ConfirmedAttack {
  readonly openedAt: number;
  readonly lastActiveAt: number;
  readonly windowMinutes: number;
}

/**
 * Returns the hours that are removed from a rule's history and its record: from the beginning of the window that
 * opened the spike to the last hour in which a window ends that still counts some of the spike.
 */
export function toAttackHours(attacks: readonly ConfirmedAttack[]): ReadonlySet<number> {
  const hours = new Set<number>();
  for (const { openedAt, lastActiveAt, windowMinutes } of attacks) {
    const last = Math.floor((lastActiveAt + LONGEST_WINDOW - 2) / 60);
    for (let hour = Math.floor((openedAt - windowMinutes) / 60); hour <= last; hour += 1) hours.add(hour);
  }
  return hours;
}
