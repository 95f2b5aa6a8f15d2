import { HOUR_MS } from "#lib/units.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import { isSearchedAndSettled } from "./plan-closing-search.ts";

/** Maximum number of sparkline buckets of the platform; platform API spec 2.3. */
const MAX_BUCKETS = 500;

/** A span of whole hours, to be counted with one bucket for each. */
export interface Comparison {
  readonly from: number;
  readonly hours: number;
}

/**
 * Returns the span from the first to the last hour that is compared with the platform's counts, or null. It contains
 * every hour that has settled and was searched, even sealed ones, because one call counts them all. An hour that has
 * not settled differs anyway.
 */
export function planComparison(
  now: number,
  hours: readonly CoveredHour[],
  policy: { readonly settleMs: number },
): Comparison | null {
  const due = hours.filter((hour) => isSearchedAndSettled(now, hour, policy));
  const [first, last] = [due[0], due.at(-1)];
  if (first === undefined || last === undefined) return null;
  const wanted = (last.startsAt - first.startsAt) / HOUR_MS + 1;
  return { from: first.startsAt, hours: Math.min(wanted, MAX_BUCKETS) };
}
