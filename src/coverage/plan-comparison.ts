import type { CoveredHour } from "./covered-hour.ts";
import { HOUR_MS } from "./horizon.ts";
import { isWholeAndSettled } from "./plan-closing-search.ts";

/** As many sparkline buckets as the platform gives; platform API spec 2.3. */
const MAX_BUCKETS = 500;

/** A span of whole hours, to be counted with one bucket for each. */
export interface Comparison {
  readonly from: number;
  readonly hours: number;
}

/**
 * The span from the first to the last hour that has to be compared with the platform's counts, or null when none has
 * to: one call counts many hours. An hour before it has settled differs anyway.
 */
export function planComparison(
  now: number,
  hours: readonly CoveredHour[],
  { settleMs }: { settleMs: number },
): Comparison | null {
  const due = hours.filter((hour) => isWholeAndSettled(now, hour, settleMs) && !isMatched(hour, settleMs));
  const [first, last] = [due[0], due.at(-1)];
  if (first === undefined || last === undefined) return null;
  const wanted = (last.startsAt - first.startsAt) / HOUR_MS + 1;
  return { from: first.startsAt, hours: Math.min(wanted, MAX_BUCKETS) };
}

/**
 * Whether the latest comparison says that nothing is missing, and still does. Ids are the platform's own and stored
 * once each, so equal counts after a complete search are equal sets; more here than there is what the platform has
 * deleted since, and proves no loss.
 */
export function isMatched(hour: CoveredHour, settleMs: number): boolean {
  const { startsAt, reconciledAt, lastNewAt, missingCells, surplusCells, upstreamCount, storedCount } = hour;
  if (reconciledAt === null || upstreamCount === null) return false;
  if (reconciledAt < startsAt + HOUR_MS + settleMs) return false;
  // In the same millisecond nobody knows which came first.
  if (lastNewAt !== null && lastNewAt >= reconciledAt) return false;
  return (
    missingCells === 0 && (surplusCells > 0 ? upstreamCount < storedCount : upstreamCount === storedCount)
  );
}
