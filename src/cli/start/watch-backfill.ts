import { setTimeout as delay } from "node:timers/promises";
import { readSearchedHours } from "../../../db/search/search-coverage.ts";
import { readStoredEvents } from "../../../db/service/service-status.ts";
import type { RunningApp } from "../../app/app.ts";
import { isBackfilled } from "../../coverage/plan-search.ts";
import { EdgeError, type EdgeErrorCode } from "../../edge/edge-error.ts";
import { toError } from "../../lib/errors.ts";
import { count, type ProgressLine, renderProgress } from "../../lib/progress-bar.ts";
import { HOUR_MS } from "../../lib/units.ts";
import { horizonAt, startOfHour } from "../../model/horizon.ts";
import { describePlatformFailure } from "./describe-platform-failure.ts";

const EVERY_MS = 500;
/** The rate is that of the last few seconds. */
const RATE_OVER = 10;
/** The platform says how much there is; while it does not answer, it is asked again this often. */
const ASK_EVERY_MS = 10_000;

/** Told what stands in the way, with what to look at, and the log event for it. */
type Tell = (problem: string, event: string) => void;

type Watched = Pick<RunningApp, "database" | "edge" | "clock" | "zoneIds">;

/**
 * Shows how the history that the platform still has comes in, until every hour has been searched or the signal ends it.
 * It only watches: the jobs do the work, of this process or of another. `tell` is given what stands in the way, once as
 * long as it is the same. Returns the events stored, or null when it was ended.
 */
export async function watchBackfill(
  app: Watched,
  line: Pick<ProgressLine, "update" | "clear">,
  tell: Tell,
  signal: AbortSignal,
): Promise<number | null> {
  const fromMs = startOfHour(horizonAt(app.clock()));
  const readTotals = createTotals(app, tell, signal);
  const samples: { at: number; done: number }[] = [];
  while (!signal.aborted) {
    const totals = await readTotals();
    // Null while the database cannot be asked: the jobs retry, and whoever only watches must not end the service.
    const seen = await look(app, fromMs, [...totals.keys()]).catch(() => null);
    if (seen?.isComplete === true) {
      line.clear();
      return seen.stored;
    }
    if (seen !== null) {
      samples.push({ at: performance.now(), done: seen.done });
      if (samples.length > RATE_OVER) samples.shift();
      line.update(describeProgress(app, totals, seen.done, rateOf(samples)));
    }
    await delay(EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
  line.clear();
  return null;
}

/**
 * How much there is: what the platform says of each zone, late events and time passing make it a little wrong. A zone that
 * it does not answer for is asked again and meanwhile left out of both numbers.
 */
function createTotals(app: Watched, tell: Tell, signal: AbortSignal) {
  const totals = new Map<number, number>();
  let askAt = Number.NEGATIVE_INFINITY;
  let told = "";

  async function askZone(shieldZoneId: number): Promise<unknown> {
    const now = app.clock();
    const request = { from: horizonAt(now), to: now, pageSize: 1 };
    try {
      const { page } = await app.edge.searchEventLogs({ shieldZoneId, request }, signal);
      totals.set(shieldZoneId, page.total);
      return null;
    } catch (thrown) {
      return thrown;
    }
  }

  return async (): Promise<ReadonlyMap<number, number>> => {
    const missing = app.zoneIds.filter((zoneId) => !totals.has(zoneId));
    if (missing.length === 0 || performance.now() < askAt) return totals;
    const failures = await Promise.all(missing.map(askZone));
    const thrown = failures.find((one) => one !== null);
    if (thrown === undefined || signal.aborted) return totals;
    // Every answer has a request id of its own.
    const kind = thrown instanceof EdgeError ? thrown.code : toError(thrown).message;
    if (kind !== told) tell(describePlatformFailure(thrown), nameFailure(thrown));
    told = kind;
    askAt = performance.now() + ASK_EVERY_MS;
    return totals;
  };
}

/** What is stored of all zones and of those in `counted`, and whether every hour of every zone was searched. */
async function look(app: Watched, fromMs: number, counted: readonly number[]) {
  const { db } = app.database;
  const stored = await readStoredEvents(db, app.zoneIds, fromMs);
  const done = counted.length === app.zoneIds.length ? stored : await readStoredEvents(db, counted, fromMs);
  return { stored, done, isComplete: await isComplete(app) };
}

function describeProgress(
  app: Watched,
  totals: ReadonlyMap<number, number>,
  done: number,
  rate: number,
): string {
  const missing = app.zoneIds.filter((zoneId) => !totals.has(zoneId));
  if (missing.length === app.zoneIds.length) return "waiting for the platform ...";
  const total = [...totals.values()].reduce((sum, one) => sum + one, 0);
  const without =
    missing.length === 0 ? "" : `  without ${missing.length === 1 ? "zone" : "zones"} ${missing.join(", ")}`;
  return `${renderProgress({ done, total, rate })}${without}`;
}

const NOT_REACHED = "platform not reached, asked again";
const ZONE_REFUSED = "zone refused by the platform, asked again";
const EVENTS: Partial<Record<EdgeErrorCode, string>> = {
  EDGE_UNAUTHORIZED: "access key refused by the platform, asked again",
  EDGE_FORBIDDEN: ZONE_REFUSED,
  EDGE_NOT_FOUND: ZONE_REFUSED,
  EDGE_PLAN: ZONE_REFUSED,
  EDGE_NETWORK: NOT_REACHED,
  EDGE_TIMEOUT: NOT_REACHED,
};

function nameFailure(thrown: unknown): string {
  if (!(thrown instanceof EdgeError)) return NOT_REACHED;
  return EVENTS[thrown.code] ?? "platform did not answer as expected, asked again";
}

async function isComplete({ database, clock, zoneIds }: Watched): Promise<boolean> {
  const now = clock();
  const range = { fromMs: startOfHour(horizonAt(now)), toMs: now + HOUR_MS };
  const zones = await Promise.all(zoneIds.map((zoneId) => readSearchedHours(database.db, zoneId, range)));
  return zones.every((hours) => isBackfilled(now, hours));
}

function rateOf(samples: readonly { at: number; done: number }[]): number {
  const first = samples[0];
  const last = samples.at(-1);
  if (first === undefined || last === undefined || last.at === first.at) return 0;
  return ((last.done - first.done) / (last.at - first.at)) * 1_000;
}

export function describeBackfill(events: number): string {
  return `History complete: ${count(events)} events of the last 72 hours are stored.`;
}
