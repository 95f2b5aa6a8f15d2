import { DAY_MS } from "#lib/units.ts";
import { startOfDay } from "#model/horizon.ts";
import type { Mistakes, Search } from "./query/search.ts";

/** How far a window may reach into the future, because clocks differ. */
const FUTURE_TOLERANCE_MS = 5 * 60_000;

/**
 * Returns what is wrong with a window, or null. The platform's rule for the last 72 hours applies to the whole
 * retention: the end of the window must lie within it, its start may be older.
 */
export function checkWindow(
  { to }: Pick<Search, "to">,
  { nowMs, retentionDays }: { nowMs: number; retentionDays: number },
): Mistakes | null {
  const wrong = (rule: string) => ({
    to: [`The value ${to} is not valid: to must ${rule} (now is ${nowMs}).`],
  });
  if (to > nowMs + FUTURE_TOLERANCE_MS) return wrong("not lie in the future");
  if (to < startOfDay(nowMs) - retentionDays * DAY_MS)
    return wrong(`be within the last ${retentionDays} days`);
  return null;
}
