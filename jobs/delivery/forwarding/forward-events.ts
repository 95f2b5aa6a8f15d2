import { z } from "zod";
import { maskText } from "#archive/rules/mask.ts";
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
import { noteFailure, noteSeen, noteSuccess } from "#db/delivery/forwarding/forward-destinations.ts";
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
import { holdLease, type OwnedLease } from "#db/postgres/hold-lease.ts";
import { assertFence } from "#db/postgres/leases.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { DeliveryError, describeFailure } from "#delivery/receivers/delivery-error.ts";
import type { Destination } from "#delivery/receivers/sinks/destination.ts";
import { hourSpan, judgeArrival, planSpans, retryPause } from "#delivery/rules/plan-spans.ts";
import type { JobContext } from "#jobs/context.ts";
import { formatDuration } from "#lib/format.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { inLanes } from "#lib/waiting.ts";
import { type Span, startOfHour } from "#model/horizon.ts";
import { keptFrom } from "#people/rules/retention.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import { forwardSpan, type RunTally, refuseWrongSetting, type SpanDeps } from "./forward-span.ts";

/** After this time a run enqueues its successor, so that a stop never waits for a backlog. */
const RUN_MS = 60_000;
/** Zones of one destination that are forwarded at the same time. */
const LANES = 4;

export interface ForwardEventsDeps extends SpanDeps, Pick<JobContext, "log" | "zoneIds"> {
  readonly destinations: ReadonlyMap<string, Destination>;
  /** Enqueues the job for a destination again. */
  readonly again: (destination: string) => unknown;
}

/**
 * Forwards stored events to one destination. Each destination has a lease of its own, so a slow one delays no other, and two
 * replicas never send the same events at once. What is sent and acknowledged is in Postgres: a kill sends the page
 * again that was on its way. A destination that is down costs one attempt per pause; its events wait where they are kept
 * anyway.
 */
export function createForwardEventsJob(deps: ForwardEventsDeps): AnyJob {
  return defineJob({
    name: "forward-events",
    queue: "derive",
    payload: z.strictObject({ destination: z.string() }),
    attempts: 1,
    // One busy hour of a zone can take a slow receiver this long. The lease, not the time, shows a dead run.
    timeoutMs: HOUR_MS,
    async run({ destination: name }, signal) {
      const destination = deps.destinations.get(name);
      if (destination === undefined) return `there is no destination ${name} in this process`;
      const lease = { name: `forward-events.${name}`, ttlMs: 15_000 };
      const done = await holdLease(deps.database, lease, (taken) =>
        forward(deps, destination, taken, AbortSignal.any([signal, taken.lost])),
      );
      return done === null ? LEASE_TAKEN : (done ?? undefined);
    },
  });
}

/** Returns why nothing was tried, if nothing was tried. */
async function forward(
  deps: ForwardEventsDeps,
  destination: Destination,
  lease: Parameters<typeof forwardZone>[1]["lease"],
  signal: AbortSignal,
): Promise<string | undefined> {
  const { database, clock, log, zoneIds } = deps;
  const { name, zones } = destination;
  const { waitMs, failures } = await noteSeen(database.db, name);
  if (waitMs > 0) return `the destination is left alone for another ${formatDuration(waitMs)}`;
  const failed = new AbortController();
  const until = clock() + RUN_MS;
  let hasMore = false;
  const tally: RunTally = { acknowledged: 0, doubted: 0, doubtedBatches: 0, reason: "" };
  const noting: SpanDeps = {
    ...deps,
    onForwarded(destination, counts) {
      tally.acknowledged += counts.events;
      deps.onForwarded(destination, counts);
    },
  };
  try {
    await inLanes(
      zoneIds.filter((zoneId) => zones?.includes(zoneId) ?? true),
      LANES,
      async (zoneId) => {
        if (failed.signal.aborted) return;
        const run = {
          destination,
          zoneId,
          lease,
          until,
          tally,
          signal: AbortSignal.any([signal, failed.signal]),
        };
        const more = await forwardZone(noting, run).catch((thrown: unknown) => {
          failed.abort(thrown);
          throw thrown;
        });
        hasMore ||= more;
      },
    );
    refuseWrongSetting(tally);
  } catch (thrown) {
    const { acknowledged } = tally;
    const cause = failed.signal.aborted ? failed.signal.reason : thrown;
    // A destination that accepts events and fails now and then works: each such failure is the first of its row.
    if (acknowledged > 0) await noteSuccess(database.db, name);
    if (!(cause instanceof DeliveryError)) throw cause;
    const before = acknowledged > 0 ? 0 : failures;
    const pauseMs = retryPause(cause, before + 1);
    const isRefused = cause.disposition === "give-up";
    // The receiver may quote an event, and no erasure changes this row.
    const error = maskText(describeFailure(cause).text);
    await noteFailure(database.db, name, { pauseMs, isRefused, error });
    // Said once: the alert and the status tell the rest.
    if (failures === 0) log.warn({ destination: name, code: cause.code, err: cause }, "forwarding failed");
    return undefined;
  }
  const { acknowledged } = tally;
  if (acknowledged > 0 || failures > 0) await noteSuccess(database.db, name);
  if (acknowledged > 0 && failures > 0) log.info({ destination: name }, "forwarding recovered");
  if (acknowledged > 0) log.debug({ destination: name, events: acknowledged }, "events forwarded");
  if (hasMore) deps.again(name);
  return acknowledged === 0 ? "nothing is to be forwarded" : undefined;
}

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
async function forwardZone(deps: SpanDeps, run: ZoneRun): Promise<boolean> {
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
