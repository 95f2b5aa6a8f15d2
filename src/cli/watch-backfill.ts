import { setTimeout as delay } from "node:timers/promises";
import { readSearchedHours } from "../../db/queries/search-coverage.ts";
import { readStoredEvents } from "../../db/queries/service-status.ts";
import type { RunningApp } from "../app.ts";
import { HOUR_MS, horizonAt, startOfHour } from "../coverage/horizon.ts";
import { isBackfilled } from "../coverage/plan-search.ts";
import { EdgeError } from "../edge/edge-error.ts";
import { toError } from "../errors.ts";
import { describePlatformFailure } from "./describe-platform-failure.ts";
import { count, type ProgressLine, renderProgress } from "./progress-bar.ts";

const EVERY_MS = 500;
/** The rate is that of the last few seconds. */
const RATE_OVER = 10;
/** The platform says how much there is; while it does not answer, it is asked again this often. */
const ASK_EVERY_MS = 10_000;

type Watched = Pick<RunningApp, "database" | "edge" | "clock" | "zoneIds">;

/**
 * Shows how the history that the platform still has comes in, until every hour has been searched or the signal ends it.
 * It only watches: the jobs do the work, of this process or of another. `tell` is given what stands in the way, once as
 * long as it is the same. Returns the events stored, or null when it was ended.
 */
export async function watchBackfill(
  app: Watched,
  line: Pick<ProgressLine, "update" | "clear">,
  tell: (problem: string) => void,
  signal: AbortSignal,
): Promise<number | null> {
  const fromMs = startOfHour(horizonAt(app.clock()));
  const countTotal = createTotal(app, tell, signal);
  const samples: { at: number; done: number }[] = [];
  while (!signal.aborted) {
    const total = await countTotal();
    // Null while the database cannot be asked: the jobs retry, and whoever only watches must not end the service.
    const seen = await look(app, fromMs).catch(() => null);
    if (seen?.isComplete === true) {
      line.clear();
      return seen.done;
    }
    if (seen !== null) {
      samples.push({ at: performance.now(), done: seen.done });
      if (samples.length > RATE_OVER) samples.shift();
      line.update(
        total === null && seen.done === 0
          ? "waiting for the platform ..."
          : renderProgress({ done: seen.done, total: total ?? 0, rate: rateOf(samples) }),
      );
    }
    await delay(EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
  line.clear();
  return null;
}

/** How much there is, asked until the platform says so; null before. */
function createTotal(app: Watched, tell: (problem: string) => void, signal: AbortSignal) {
  let total: number | null = null;
  let askAt = Number.NEGATIVE_INFINITY;
  let told = "";
  return async (): Promise<number | null> => {
    if (total !== null || performance.now() < askAt) return total;
    try {
      total = await countUpstream(app, signal);
    } catch (thrown) {
      // Every answer has a request id of its own.
      const kind = thrown instanceof EdgeError ? thrown.code : toError(thrown).message;
      if (!signal.aborted && kind !== told) tell(describePlatformFailure(thrown));
      told = kind;
      askAt = performance.now() + ASK_EVERY_MS;
    }
    return total;
  };
}

async function look(app: Watched, fromMs: number): Promise<{ done: number; isComplete: boolean }> {
  const done = await readStoredEvents(app.database.db, app.zoneIds, fromMs);
  return { done, isComplete: await isComplete(app) };
}

/** What the platform says there is; late events and time passing make it a little wrong. */
async function countUpstream({ edge, zoneIds, clock }: Watched, signal: AbortSignal): Promise<number> {
  const now = clock();
  const request = { from: horizonAt(now), to: now, pageSize: 1 };
  const answers = await Promise.all(
    zoneIds.map((shieldZoneId) => edge.searchEventLogs({ shieldZoneId, request }, signal)),
  );
  return answers.reduce((sum, { page }) => sum + page.total, 0);
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
