import { setTimeout as delay } from "node:timers/promises";
import { readSearchedHours } from "../../db/queries/search-coverage.ts";
import { readStoredEvents } from "../../db/queries/service-status.ts";
import type { RunningApp } from "../app.ts";
import { HOUR_MS, horizonAt, startOfHour } from "../coverage/horizon.ts";
import { isBackfilled } from "../coverage/plan-search.ts";
import { count, createProgressLine, renderProgress } from "./progress-bar.ts";

const EVERY_MS = 500;
/** The rate is that of the last few seconds. */
const RATE_OVER = 10;

type Watched = Pick<RunningApp, "database" | "edge" | "clock" | "zoneIds">;

/**
 * Shows how the history that the platform still has comes in, until every hour has been searched or the signal ends it.
 * It only watches: the jobs do the work, of this process or of another. Returns the events stored, or null when it
 * was ended.
 */
export async function watchBackfill(
  app: Watched,
  stream: Parameters<typeof createProgressLine>[0],
  signal: AbortSignal,
): Promise<number | null> {
  const line = createProgressLine(stream);
  const fromMs = startOfHour(horizonAt(app.clock()));
  const total = await countUpstream(app, signal).catch(() => 0);
  const samples: { at: number; done: number }[] = [];
  while (!signal.aborted) {
    // Null while the database cannot be asked: the jobs retry, and whoever only watches must not end the service.
    const seen = await look(app, fromMs).catch(() => null);
    if (seen?.isComplete === true) {
      line.clear();
      return seen.done;
    }
    if (seen !== null) {
      samples.push({ at: performance.now(), done: seen.done });
      if (samples.length > RATE_OVER) samples.shift();
      line.update(renderProgress({ done: seen.done, total, rate: rateOf(samples) }));
    }
    await delay(EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
  line.clear();
  return null;
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
