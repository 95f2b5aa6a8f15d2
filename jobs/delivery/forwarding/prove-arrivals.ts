import { readArchivedDays } from "#db/archive/archived-days.ts";
import { type ForwardedZone, readCursor } from "#db/delivery/forwarding/forward-cursors.ts";
import {
  lookAgain,
  readUnproven,
  storeArrival,
  type UnprovenHour,
} from "#db/delivery/forwarding/forward-hours.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { countMatches } from "#db/search/open-rows.ts";
import { inSearchTransaction } from "#db/search/search-condition.ts";
import { planFilters } from "#stages/archive/query/plan-search.ts";
import { hourSpan, judgeArrival } from "#stages/delivery/forwarding/plan-looks.ts";
import type { ZoneRun } from "./forward-zone.ts";
import type { LookDeps } from "./look-at-span.ts";

/** A receiver may count an event only after it has refreshed its index. */
const QUIET_MS = 30_000;
const MOST_HOURS = 100;

/** Decides which of the hours that are sealed, or gaps, have arrived. Returns whether some have to be looked at again now. */
export async function proveArrivals(deps: LookDeps, run: ZoneRun, zone: ForwardedZone): Promise<boolean> {
  const { db } = deps.database;
  const { destination, signal } = run;
  const { count } = destination.sink;
  const cursor = await readCursor(db, zone);
  if (cursor === null) return false;
  const quietMs = count === null ? 0 : QUIET_MS;
  const hours = await readUnproven(db, zone, { cursor, quietMs, limit: MOST_HOURS });
  let looks = 0;
  for (const hour of hours) {
    signal.throwIfAborted();
    const { startsAt, acknowledged, refused, wasSentAgain } = hour;
    const stored = await countStored(deps, run, hour);
    const counted = count === null ? null : await count({ zoneId: zone.zoneId, startsAt }, signal);
    const isLookedAt = hour.lookedAt === stored;
    const verdict = judgeArrival({ stored, acknowledged, refused, counted, isLookedAt, wasSentAgain });
    if (verdict === "arrived" || verdict === "differs") {
      await storeArrival(db, zone, { startsAt, arrival: verdict, stored, counted });
      continue;
    }
    looks += 1;
    const isAnew = verdict === "send-again";
    await inTransaction(deps.database, ({ tx }) => lookAgain(tx, zone, [startsAt], { isAnew, stored }));
  }
  return looks > 0 || hours.length === MOST_HOURS;
}

/** Returns how many stored events of the hour pass the filter. An archive day cannot change, so its last look counts. */
async function countStored(
  { database }: LookDeps,
  { destination, zoneId }: ZoneRun,
  { startsAt, stored, lookedAt }: UnprovenHour,
): Promise<number> {
  if (destination.where.length === 0) return stored;
  const clauses = planFilters(destination.where);
  const span = hourSpan(startsAt);
  return inSearchTransaction(database, async (tx) => {
    const archived = await readArchivedDays(tx, zoneId, span);
    if (archived.length > 0) return lookedAt ?? 0;
    const counts = await countMatches(tx, zoneId, { ...span, clauses }, [span]);
    return counts.reduce((sum, { total }) => sum + total, 0);
  });
}
