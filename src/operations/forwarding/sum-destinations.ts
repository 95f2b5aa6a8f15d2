import type { Queryable } from "#db/client.ts";
import { type DestinationHealth, readDestinations } from "#db/delivery/forwarding/forward-destinations.ts";
import { readArrivals } from "#db/delivery/forwarding/forward-report.ts";
import { DAY_MS } from "#lib/units.ts";
import { needsPerson } from "#stages/alerting/self/forward-alert.ts";

/** Older hours are left out, so that few rows are read. */
const SUMMED_MS = 30 * DAY_MS;

/** Totals of a destination, all zones together. Hours are those of the last 30 days. */
export interface DestinationTotals {
  readonly destination: string;
  /** Null if nothing was ever sent to it. */
  readonly health: DestinationHealth | null;
  /** Whether it fails in a way that does not end by itself soon. */
  readonly needsPerson: boolean;
  readonly hoursOpen: number;
  readonly hoursDiffering: number;
  /** Start of the oldest sealed hour that has not arrived, epoch ms; null if there is none. */
  readonly oldestAt: number | null;
  readonly refused: number;
}

/** Returns the totals of these destinations. */
export async function sumDestinations(
  db: Queryable,
  names: readonly string[],
  nowMs: number,
): Promise<DestinationTotals[]> {
  if (names.length === 0) return [];
  const healths = await readDestinations(db);
  const arrivals = await readArrivals(db, { from: nowMs - SUMMED_MS });
  return names.map((name) => {
    const health = healths.get(name) ?? null;
    const zones = arrivals.filter(({ destination }) => destination === name);
    const oldest = zones.flatMap(({ oldestAt }) => oldestAt ?? []);
    return {
      destination: name,
      health,
      needsPerson: health !== null && needsPerson(health, nowMs),
      hoursOpen: zones.reduce(
        (sum, { decided, arrived, differing }) => sum + decided - arrived - differing,
        0,
      ),
      hoursDiffering: zones.reduce((sum, { differing }) => sum + differing, 0),
      oldestAt: oldest.length === 0 ? null : Math.min(...oldest),
      refused: zones.reduce((sum, { refused }) => sum + refused, 0),
    };
  });
}
