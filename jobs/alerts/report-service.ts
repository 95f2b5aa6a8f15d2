import { z } from "zod";
import { avoidFailing, routeSelf, type SelfSubject } from "#alerts/rules/self-alert.ts";
import { type SignedSilence, toSilences } from "#alerts/rules/silence.ts";
import { readSilences } from "#db/alerts/silences.ts";
import type { Queryable } from "#db/client.ts";
import { type DailyGrowth, readDailyGrowth } from "#db/health/service-status.ts";
import { readClockOffset } from "#db/postgres/server.ts";
import { watchZones } from "#db/proof/platform-health.ts";
import type { DiskSpace } from "#lib/disk.ts";
import type { Log } from "#lib/log.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { examine, openScope } from "../health/conditions/condition.ts";
import { WATCHED_MS } from "../health/conditions/coverage.ts";
import { channel, DELIVERY_CONDITIONS } from "../health/conditions/delivery.ts";
import { SERVICE_CONDITIONS } from "../health/conditions/service.ts";
import { raiseExamined } from "./raise-self.ts";
import { endUnwatched } from "./resolve-alert.ts";

/** The sizes of tables change slowly, and reading them needs disk access. */
const GROWTH_EVERY_MS = 15 * 60_000;

/** deliver-alerts reports channels, as soon as they fail. */
const REPORTED = [...SERVICE_CONDITIONS, ...DELIVERY_CONDITIONS].filter((condition) => condition !== channel);

export interface ReportServiceDeps
  extends Pick<
    JobContext,
    "database" | "clock" | "log" | "zoneIds" | "routing" | "pollEveryMs" | "afterAlerts"
  > {
  /** The names of the destinations to which events are forwarded. */
  readonly destinations?: readonly string[];
  /**
   * Returns the disk space of the embedded Postgres. Null or left out for another server, whose disk cannot be read.
   */
  readonly readDisk?: (() => DiskSpace | null) | null;
}

/**
 * Raises, updates and resolves the alerts about the service, its destinations and its silences. Also ends the alerts of
 * zones that no process watches any more. Everything but the disk is read from rows, so any replica can run it, and several
 * at once.
 */
export function createReportServiceJob(deps: ReportServiceDeps): AnyJob {
  const readGrowth = createGrowthReader(deps);
  return defineJob({
    name: "report-service",
    queue: "alerts",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 30_000,
    run: () => reportService(deps, readGrowth),
  });
}

function createGrowthReader({ database, clock }: ReportServiceDeps): () => Promise<DailyGrowth> {
  let read: { readonly atMs: number; readonly growth: DailyGrowth } | null = null;
  return async () => {
    const atMs = clock();
    if (read === null || Math.abs(atMs - read.atMs) >= GROWTH_EVERY_MS)
      read = { atMs, growth: await readDailyGrowth(database.db, atMs) };
    return read.growth;
  };
}

async function reportService(deps: ReportServiceDeps, readGrowth: () => Promise<DailyGrowth>): Promise<void> {
  const { database, clock, log, zoneIds, pollEveryMs, destinations = [] } = deps;
  const nowMs = clock();
  // After a longer pause the service was down, and it needs time to poll before its data counts as old.
  await watchZones(database.db, zoneIds, { nowMs, breakMs: WATCHED_MS });
  const readDisk = async () => {
    const space = deps.readDisk?.() ?? null;
    return space === null ? null : { ...space, ...(await readGrowth()) };
  };
  const routing = deps.routing();
  const { zones = {} } = routing;
  const scope = openScope({ db: database.db, nowMs, zoneIds, pollEveryMs, destinations, zones, readDisk });
  const context = {
    routing,
    silences: await readActiveSilences(database.db, log, nowMs),
    nowMs,
  };
  const alerting = {
    database,
    log,
    routeOf: (subject: SelfSubject) => routeSelf(context, subject),
  };
  let written = await raiseExamined(alerting, await examine(scope, REPORTED));
  written += await endUnwatched(deps, nowMs);
  if (written > 0) await deps.afterAlerts();
}

interface ReportChannelsDeps extends Pick<JobContext, "database" | "log" | "routing"> {
  /** The configured channels by name. */
  readonly notifiers: ReadonlyMap<string, unknown>;
}

/**
 * Raises an alert for every channel that fails, to those of its routes' other channels that work, and resolves it when
 * the channel delivers again or is not configured any more. Returns the number of transitions written.
 */
export async function reportChannels({
  database,
  notifiers,
  log,
  routing,
}: ReportChannelsDeps): Promise<number> {
  const { db } = database;
  const channels = [...notifiers.keys()];
  const nowMs = Math.floor(Date.now() + (await readClockOffset(db)));
  const examined = await examine(openScope({ db, nowMs, zoneIds: [], channels }), [channel]);
  // A channel with an open circuit gets no alert about itself, also when one message has just arrived.
  const failing = new Set(
    examined.flatMap(({ found, subject }) => (found === null ? [] : String(subject.key))),
  );
  const context = { routing: routing(), silences: await readActiveSilences(db, log, nowMs), nowMs };
  const routeOf = (subject: SelfSubject) => avoidFailing(routeSelf(context, subject), channels, failing);
  return raiseExamined({ database, log, routeOf }, examined);
}

/**
 * Returns the silences in force. A silence that cannot be read is ignored: an unwanted notification is better than a
 * missing one.
 */
export async function readActiveSilences(
  db: Queryable,
  log: Pick<Log, "warn">,
  nowMs: number,
): Promise<readonly SignedSilence[]> {
  const rows = await readSilences(db, { fromMs: nowMs, toMs: nowMs });
  const silences = toSilences(rows);
  const readable = new Set(silences.map(({ id }) => id));
  for (const { id } of rows) if (!readable.has(id)) log.warn({ silenceId: id }, "unreadable silence ignored");
  return silences;
}
