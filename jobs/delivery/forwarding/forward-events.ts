import { z } from "zod";
import { maskText } from "#archive/rules/mask.ts";
import { noteFailure, noteSeen, noteSuccess } from "#db/delivery/forwarding/forward-destinations.ts";
import { holdLease } from "#db/postgres/hold-lease.ts";
import { DeliveryError, describeFailure } from "#delivery/receivers/delivery-error.ts";
import type { Destination } from "#delivery/receivers/sinks/destination.ts";
import { retryPause } from "#delivery/rules/plan-spans.ts";
import { formatDuration } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { inLanes } from "#lib/waiting.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import type { JobContext } from "../../context.ts";
import { type RunTally, refuseWrongSetting, type SpanDeps } from "./forward-span.ts";
import { forwardZone } from "./forward-zone.ts";

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
