import { readArchivedDays } from "#db/archive/archived-days.ts";
import { type ForwardedZone, readCursor } from "#db/delivery/forwarding/forward-cursors.ts";
import {
  readHoursAgain,
  readUnproven,
  storeArrival,
  type UnprovenHour,
} from "#db/delivery/forwarding/forward-hours.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { countMatches } from "#db/search/open-rows.ts";
import { inSearchTransaction } from "#db/search/search-condition.ts";
import { planFilters } from "#stages/archive/query/plan-search.ts";
import { hourSpan, judgeArrival } from "#stages/delivery/forwarding/plan-spans.ts";
import type { SpanDeps } from "./forward-span.ts";
import type { ZoneRun } from "./forward-zone.ts";

/** A receiver may count an event only after it has refreshed its index. */
const IDLE_MS = 30_000;
const MOST_HOURS = 100;

/** Decides which of the hours that are sealed, or gaps, have arrived. Returns whether some have to be read again now. */
export async function proveArrivals(deps: SpanDeps, run: ZoneRun, zone: ForwardedZone): Promise<boolean> {
  const { db } = deps.database;
  const { destination, signal } = run;
  const { count } = destination.sink;
  const cursor = await readCursor(db, zone);
  if (cursor === null) return false;
  const idleMs = count === null ? 0 : IDLE_MS;
  const hours = await readUnproven(db, zone, { cursor, idleMs, limit: MOST_HOURS });
  let readAgain = 0;
  for (const hour of hours) {
    signal.throwIfAborted();
    const { startsAt, acknowledged, refused, wasSentAgain } = hour;
    const stored = await countStored(deps, run, hour);
    const counted = count === null ? null : await count({ zoneId: zone.zoneId, startsAt }, signal);
    const isRead = hour.readCount === stored;
    const verdict = judgeArrival({ stored, acknowledged, refused, counted, isRead, wasSentAgain });
    if (verdict === "arrived" || verdict === "differs") {
      await storeArrival(db, zone, { startsAt, arrival: verdict, stored, counted });
      continue;
    }
    readAgain += 1;
    const isAnew = verdict === "send-again";
    await inTransaction(deps.database, ({ tx }) => readHoursAgain(tx, zone, [startsAt], { isAnew, stored }));
  }
  return readAgain > 0 || hours.length === MOST_HOURS;
}

/** Returns how many stored events of the hour pass the filter. An archive day cannot change, so its last count stays. */
async function countStored(
  { database }: SpanDeps,
  { destination, zoneId }: ZoneRun,
  { startsAt, stored, readCount }: UnprovenHour,
): Promise<number> {
  if (destination.where.length === 0) return stored;
  const clauses = planFilters(destination.where);
  const span = hourSpan(startsAt);
  return inSearchTransaction(database, async (tx) => {
    const archived = await readArchivedDays(tx, zoneId, span);
    if (archived.length > 0) return readCount ?? 0;
    const counts = await countMatches(tx, zoneId, { ...span, clauses }, [span]);
    return counts.reduce((sum, { total }) => sum + total, 0);
  });
}
