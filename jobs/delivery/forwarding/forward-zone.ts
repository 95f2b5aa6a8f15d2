/** Forwards the spans of a zone, and proves that they arrived. */

import { planFilters } from "#archive/rules/query/plan-search.ts";
import { readArchivedDays } from "#db/archive/archived-days.ts";
import { countOpen } from "#db/archive/open-rows.ts";
import { inSearchTransaction } from "#db/archive/search-condition.ts";
import type { Queryable } from "#db/client.ts";
import {
  createCursor,
  type ForwardedZone,
  moveCursor,
  readChangedMinutes,
  readCursor,
} from "#db/delivery/forwarding/forward-cursors.ts";
import {
  closeHours,
  type DueSpan,
  noteSpan,
  readClosed,
  readDueSpans,
  readHoursAgain,
  readUnproven,
  storeArrival,
  type UnprovenHour,
} from "#db/delivery/forwarding/forward-hours.ts";
import type { OwnedLease } from "#db/postgres/hold-lease.ts";
import { assertFence } from "#db/postgres/leases.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { Destination } from "#delivery/receivers/sinks/destination.ts";
import { hourSpan, judgeArrival, planSpans } from "#delivery/rules/plan-spans.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type Span, startOfHour } from "#model/horizon.ts";
import { keptFrom } from "#people/rules/retention.ts";
import { forwardSpan, type RunTally, type SpanDeps } from "./forward-span.ts";

/** A minute is over for the polls this long after its end. Records come with the list, some minutes later. */
const SETTLE_MS = 5_000;
const SETTLE_RECORDS_MS = 2 * MINUTE_MS;
/** Events that may become complete are read again after this time. */
const AGAIN_MS = 2 * MINUTE_MS;
const MOST_MINUTES = 240;

interface ZoneRun {
  readonly destination: Destination;
  readonly zoneId: number;
  readonly lease: OwnedLease;
  /** Epoch ms. Nothing further is begun after it. */
  readonly until: number;
  readonly tally: RunTally;
  readonly signal: AbortSignal;
}

/**
 * Forwards a zone's events to one destination: first the minutes that have changed, then hours that have to be read as
 * a whole (the backlog, hours that are sent again, events that were not complete), one at a time, so that new events never wait
 * for old ones. Decides which hours have arrived as soon as they are sent. Returns whether there is more to do now.
 * @throws {DeliveryError}
 */
export async function forwardZone(deps: SpanDeps, run: ZoneRun): Promise<boolean> {
  const { database, clock } = deps;
  const { destination, zoneId, until } = run;
  const zone: ForwardedZone = { destination: destination.name, zoneId };
  if ((await readCursor(database.db, zone)) === null) {
    const { startAgoMs } = destination;
    const begin = startAgoMs === null ? 0 : startOfHour(clock() - startAgoMs);
    const since = Math.max(begin, keptFrom(clock(), deps.eventDays));
    await commit(deps, run, (tx) => createCursor(tx, zone, since));
  }
  for (;;) {
    run.signal.throwIfAborted();
    const isLate = clock() >= until;
    if (!isLate && (await forwardChanges(deps, run, zone))) continue;
    const [due] = await readDueSpans(database.db, zone, 1);
    if (due === undefined) break;
    if (isLate) return true;
    await forwardAndNote(deps, run, zone, due);
    // Not only at the end: a backlog may take days, and its runs may end in failures.
    await proveArrivals(deps, run, zone);
  }
  const wantsMore = await proveArrivals(deps, run, zone);
  await closeHours(database.db, zone, clock());
  return wantsMore;
}

/** Returns whether the cursor has moved. */
async function forwardChanges(deps: SpanDeps, run: ZoneRun, zone: ForwardedZone): Promise<boolean> {
  const { db } = deps.database;
  const cursor = await readCursor(db, zone);
  if (cursor === null) return false;
  const changes = await readChangedMinutes(db, zone.zoneId, { ...cursor, limit: MOST_MINUTES });
  const waitMs = run.destination.format === "event" ? SETTLE_MS : SETTLE_RECORDS_MS;
  const { spans, seq } = planSpans(changes, { nowMs: deps.clock(), waitMs });
  if (seq === null) return false;
  const closed = await readClosed(db, zone, [...new Set(spans.map(({ from }) => startOfHour(from)))]);
  for (const span of spans)
    if (!closed.has(startOfHour(span.from))) await forwardAndNote(deps, run, zone, span);
  await commit(deps, run, (tx) => moveCursor(tx, zone, seq));
  return true;
}

async function forwardAndNote(
  deps: SpanDeps,
  run: ZoneRun,
  zone: ForwardedZone,
  span: Span | DueSpan,
): Promise<void> {
  const due = "readAt" in span ? span : null;
  const { stored, acknowledged, waiting } = await forwardSpan(deps, { ...run, span });
  const startsAt = startOfHour(span.from);
  const hour = hourSpan(startsAt);
  const isWhole = span.from <= hour.from && span.to >= hour.to;
  const whole = isWhole ? { stored: run.destination.where.length === 0 ? null : stored, acknowledged } : null;
  await commit(deps, run, (tx) => noteSpan(tx, zone, { startsAt, due, whole, waiting, againMs: AGAIN_MS }));
}

function commit(
  { database }: SpanDeps,
  { lease }: ZoneRun,
  write: (tx: Queryable) => Promise<unknown>,
): Promise<void> {
  return inTransaction(database, async ({ tx }) => {
    await write(tx);
    await assertFence(tx, lease.name, lease.fence);
  });
}

/** A receiver may count an event only after it has refreshed its index. */
const IDLE_MS = 30_000;
const MOST_HOURS = 100;

/** Decides which of the hours that are sealed, or gaps, have arrived. Returns whether some have to be read again now. */
async function proveArrivals(deps: SpanDeps, run: ZoneRun, zone: ForwardedZone): Promise<boolean> {
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
    const counts = await countOpen(tx, zoneId, { ...span, clauses });
    return counts.reduce((sum, { total }) => sum + total, 0);
  });
}
