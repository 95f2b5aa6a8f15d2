import type { Queryable } from "#db/client.ts";
import { readCoverageHours } from "#db/coverage/coverage-report.ts";
import { advanceSearch } from "#db/coverage/horizons.ts";
import { advanceBackfill } from "#db/ingest/backfills.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import { isClosingSearch } from "#stages/coverage/plan-closing-search.ts";
import { SETTLE_MS } from "#stages/coverage/settle.ts";
import type { BackfillDeps, Expired, RunningBackfill } from "./backfill-deps.ts";

/** A part of one hour, epoch ms, and the callbacks for its transactions. */
export interface HourToRead {
  readonly from: number;
  readonly to: number;
  /** Nothing of the hour is stored yet. */
  readonly isFirst: boolean;
  /** Called in the transaction of each page. */
  readonly onPage: (tx: Queryable, page: { readonly inserted: number }) => Promise<void>;
  /** Called in the transaction after which everything before `through` is stored. */
  readonly conclude: (tx: Queryable, through: number) => Promise<void>;
}

/**
 * Reads the rest of a backfill hour by hour with `readHour` of the route, the hour that expires first in front. An hour
 * that was read from its start counts as searched, so the service does not search it again. With `isProof`, a settled
 * hour that was read completely also counts as having its closing search. Returns the spans that expired before they
 * were read.
 */
export async function backfillHours(
  deps: BackfillDeps,
  { backfill, isProof }: RunningBackfill & { readonly isProof: boolean },
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
    const startedAt = clock();
    const isClosing =
      isProof && from <= hour && isClosingSearch({ hour, from, to: end }, startedAt, SETTLE_MS);
    const onPage: HourToRead["onPage"] = (tx, { inserted }) =>
      advanceBackfill(tx, backfill, { through: null, newEvents: inserted });
    const conclude: HourToRead["conclude"] = async (tx, through) => {
      await advanceBackfill(tx, backfill, { through, newEvents: 0 });
      const closingSearchAt = isClosing && through === end ? startedAt : null;
      if (isWhole)
        await advanceSearch(tx, zoneId, { startsAt: hour, searchedThrough: through, closingSearchAt });
    };
    if (from < end)
      await readHour({ from, to: end, isFirst: (stored.get(hour) ?? 0) === 0, onPage, conclude });
    at = end;
  }
  return expired;
}
