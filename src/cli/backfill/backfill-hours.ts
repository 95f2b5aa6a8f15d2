import type { Queryable } from "../../../db/client.ts";
import { advanceBackfill } from "../../../db/queries/backfills.ts";
import { readCoverageHours } from "../../../db/queries/coverage-report.ts";
import { advanceSearch } from "../../../db/queries/search-coverage.ts";
import { HOUR_MS, horizonAt, startOfHour } from "../../coverage/horizon.ts";
import type { BackfillDeps, Expired, RunningBackfill } from "./backfill-deps.ts";

/** Part of one hour, epoch ms, and how to end it. */
export interface HourToRead {
  readonly from: number;
  readonly to: number;
  /** Nothing of the hour is stored yet. */
  readonly isFirst: boolean;
  /** For the transaction of each page; `through` says up to where everything is stored now. */
  readonly conclude: (
    tx: Queryable,
    page: { readonly inserted: number; readonly through: number | null },
  ) => Promise<void>;
}

/**
 * Reads what is left of a backfill hour by hour, the one that expires first in front, with the route's own `readHour`.
 * An hour that was read from its begin counts as searched, so that the service need not do it again. Returns what
 * expired before its turn.
 */
export async function backfillHours(
  deps: BackfillDeps,
  { backfill }: RunningBackfill,
  readHour: (hour: HourToRead) => Promise<unknown>,
  signal: AbortSignal,
): Promise<Expired[]> {
  const { database, clock } = deps;
  const { zoneId, to } = backfill;
  const known = await readCoverageHours(database.db, zoneId, { from: startOfHour(backfill.doneThrough), to });
  const stored = new Map(known.map(({ startsAt, storedCount }) => [startsAt, storedCount]));
  const expired: Expired[] = [];
  for (let at = backfill.doneThrough; at < to; ) {
    signal.throwIfAborted();
    const hour = startOfHour(at);
    const end = Math.min(hour + HOUR_MS, to);
    const from = Math.max(at, horizonAt(clock()));
    if (from > at) expired.push({ from: at, to: Math.min(from, end) });
    const isWhole = backfill.from <= hour && from === at;
    const conclude: HourToRead["conclude"] = async (tx, { inserted, through }) => {
      await advanceBackfill(tx, backfill, { through, newEvents: inserted });
      if (isWhole && through !== null)
        await advanceSearch(tx, zoneId, { startsAt: hour, searchedThrough: through });
    };
    if (from < end) await readHour({ from, to: end, isFirst: (stored.get(hour) ?? 0) === 0, conclude });
    at = end;
  }
  return expired;
}
