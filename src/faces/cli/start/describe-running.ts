/** What `start` says once the service runs. */

import { setTimeout as delay } from "node:timers/promises";
import type { RunningApp } from "#app/app.ts";
import { listAlerts } from "#db/alerts/alert-reports.ts";
import { readStoredEvents } from "#db/health/service-status.ts";
import { readSearchedHours } from "#db/proof/horizons.ts";
import { toError } from "#lib/errors.ts";
import { formatWhole, showAge } from "#lib/format.ts";
import { OWN_COMMAND } from "#lib/process.ts";
import { type ProgressLine, renderProgress } from "#lib/progress-bar.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import { UNRESOLVED_STATES } from "#model/kinds.ts";
import { EdgeError, type EdgeErrorCode } from "#platform/edge-error.ts";
import { isBackfilled } from "#proof/rules/plan-search.ts";
import { describePlatformFailure } from "./describe-failure.ts";

/** The emulated attack at the moment when the history is complete. */
interface RunningAttack {
  readonly zoneId: number;
  /** Negative after the start of the attack. */
  readonly startsInMs: number;
  /** The unresolved alert of the attacked rule, or null. */
  readonly alertId: number | null;
}

/** Returns the emulated attack, or null on a real platform. */
export async function readAttack({
  platform,
  database,
}: Pick<RunningApp, "platform" | "database">): Promise<RunningAttack | null> {
  const { attack } = platform;
  if (attack === null) return null;
  const { zoneId, ruleId, startsAtMs } = attack;
  const [alert] = await listAlerts(database.db, {
    states: UNRESOLVED_STATES,
    zoneId,
    rule: ruleId,
    limit: 1,
  });
  return { zoneId, startsInMs: startsAtMs - Date.now(), alertId: alert?.id ?? null };
}

export interface SignInPlace {
  /** The console's URL. */
  readonly url: string;
  /** Null where the output is no terminal, or there is no valid admin key. */
  readonly link: string | null;
}

/** Returns the text that a start prints as soon as the console can be opened. */
export function describeSignIn({ url, link }: SignInPlace, command = OWN_COMMAND): string {
  return link === null
    ? `The console: ${url}\nTo get a link that signs in once:\n  ${command} sign-in\n`
    : `The console. This link signs in once and is valid for ten minutes:\n  ${link}\n`;
}

/** Returns the text that a start prints at its end. Every line without a long address fits 80 columns. */
export function describeRunning(
  {
    platform,
    httpUrl,
    zoneIds,
    attack,
  }: Pick<RunningApp, "httpUrl" | "zoneIds"> & {
    readonly platform: Pick<RunningApp["platform"], "url" | "isEmulated">;
    readonly attack: RunningAttack | null;
  },
  /** `dataDir` is null if the state is in an external database. */
  { dataDir, command = OWN_COMMAND }: { readonly dataDir: string | null; readonly command?: string },
): string {
  const commands: [string, string][] = [
    ["status", "is it running, what needs attention"],
    ["coverage", "which hours are complete"],
    ["alerts list", "unresolved alerts"],
    ["gaps", "lost hours and the reasons"],
    ["sign-in", "a new link to the console"],
    ["--help", "all commands"],
  ];
  const widest = Math.max(...commands.map(([typed]) => typed.length));
  const lines = commands.map(([typed, does]) => `  ${command} ${typed.padEnd(widest)}  ${does}`);
  const addresses = [
    ...(httpUrl === null
      ? []
      : [
          "",
          "The API, with the key that the first start printed (or one of `keys create`):",
          `  curl -H "AccessKey: $KEY" ${httpUrl}/api/v1/alerts`,
          `  ${httpUrl}/docs  every route, with examples`,
        ]),
    ...(platform.isEmulated ? ["", "The data of the emulated platform:", `  ${platform.url}/_emulator`] : []),
  ];
  const zones = `Watching ${zoneIds.length === 1 ? "zone" : "zones"} ${zoneIds.join(", ")}.`;
  return [
    attack === null ? zones : describeAttack(attack, command),
    "",
    "Commands for another terminal:",
    ...lines,
    ...addresses,
    "",
    ...(dataDir === null ? [] : [`State is kept in ${dataDir}.`]),
    "Ctrl-C stops everything that was started.",
    "",
  ].join("\n");
}

function describeAttack({ zoneId, startsInMs, alertId }: RunningAttack, command: string): string {
  if (alertId !== null)
    return `An attack on zone ${zoneId} is emulated. Its alert is open, so no new alert appears:\n  ${command} alerts show ${alertId}`;
  const when = startsInMs > 0 ? `begins in ${showAge(startsInMs)}` : `began ${showAge(-startsInMs)} ago`;
  return `An attack on zone ${zoneId} ${when}. Its alert appears here, a minute later\nat most.`;
}

/** How often the progress is drawn. */
const EVERY_MS = 500;
/** The rate is measured over the last few seconds. */
const RATE_OVER = 10;
/** How often the platform is asked again for its number of events after a failure. */
const ASK_EVERY_MS = 10_000;

/** Called with a problem, which includes the next step, and with its log message. */
type OnProblem = (problem: string, event: string) => void;

type Watched = Pick<RunningApp, "database" | "edge" | "clock" | "zoneIds">;

/**
 * Shows the progress of copying the platform's history, until every hour has been searched or the signal ends it. The
 * jobs of this or another process do the work. Calls `onProblem` once per kind of problem. Returns the number of stored
 * events, or null if the signal ended it.
 */
export async function watchBackfill(
  app: Watched,
  line: Pick<ProgressLine, "update" | "clear">,
  onProblem: OnProblem,
  signal: AbortSignal,
  everyMs = EVERY_MS,
): Promise<number | null> {
  const fromMs = startOfHour(horizonAt(app.clock()));
  const readTotals = createTotals(app, onProblem, signal);
  const samples: { at: number; done: number }[] = [];
  while (!signal.aborted) {
    const totals = await readTotals();
    // Null while the database does not answer. The jobs retry; the progress display must not end the service.
    const seen = await readProgress(app, fromMs, [...totals.keys()]).catch(() => null);
    if (seen?.isComplete === true) {
      line.clear();
      return seen.stored;
    }
    if (seen !== null) {
      samples.push({ at: performance.now(), done: seen.done });
      if (samples.length > RATE_OVER) samples.shift();
      line.update(describeProgress(app, totals, seen.done, rateOf(samples)));
    }
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
  line.clear();
  return null;
}

/**
 * Returns a function that reads the platform's number of events per zone. Late events and passing time make it slightly
 * inexact. A zone without an answer is asked again later and is left out of both numbers until then.
 */
function createTotals(app: Watched, onProblem: OnProblem, signal: AbortSignal) {
  const totals = new Map<number, number>();
  let askAt = Number.NEGATIVE_INFINITY;
  let reported = "";

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
    // Compared by code, because every message has its own request id.
    const kind = thrown instanceof EdgeError ? thrown.code : toError(thrown).message;
    if (kind !== reported) onProblem(describePlatformFailure(thrown), nameFailure(thrown));
    reported = kind;
    askAt = performance.now() + ASK_EVERY_MS;
    return totals;
  };
}

/** Counts the stored events of all zones and of the zones in `counted`, and checks whether every hour was searched. */
async function readProgress(app: Watched, fromMs: number, counted: readonly number[]) {
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
  return `History complete: ${formatWhole(events)} events of the last 72 hours are stored.`;
}
