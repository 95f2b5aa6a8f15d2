import { z } from "zod";
import { toAlertRecord } from "#alerts/rules/alert-record.ts";
import {
  assessCredentials,
  assessUnpolled,
  credentialsFingerprint,
  unpolledFingerprint,
  unpolledLimit,
} from "#alerts/rules/self/service-alert.ts";
import {
  archiveFingerprint,
  assessArchive,
  assessDisk,
  assessKey,
  diskFingerprint,
  keyFingerprint,
} from "#alerts/rules/self/store-alerts.ts";
import { routeSelf } from "#alerts/rules/self-alert.ts";
import { readNewestAlerts } from "#db/alerts/alerts.ts";
import { readDamagedFiles } from "#db/archive/bring-file.ts";
import { type DailyGrowth, readDailyGrowth } from "#db/health/service-status.ts";
import { readHeldCounts } from "#db/ingest/held-entries.ts";
import { readKeyProblem } from "#db/people/pseudonymise.ts";
import { readZoneHealth, watchZones } from "#db/proof/platform-health.ts";
import type { DiskSpace } from "#lib/disk.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { raiseSelfAlert, type SelfAlertDeps } from "./persist-transition.ts";
import { reportDestinations } from "./report-channels.ts";
import { readActiveSilences, reportSilences } from "./report-silences.ts";
import { endUnwatched } from "./resolve-alert.ts";

/** The sizes of tables change slowly, and reading them needs disk access. */
const GROWTH_EVERY_MS = 15 * 60_000;

/**
 * The job runs every minute. After a longer pause the service was down, and it needs time to poll before its data
 * counts as old.
 */
const BREAK_MS = 5 * 60_000;
/** A process that lacks the pseudonym key reports it every minute. */
export const KEY_REPORT_MS = 3 * 60_000;

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
 * Raises, updates and resolves the alerts of Longwatch about its own operation: the platform refuses the access key,
 * a zone was not polled, a process lacks the pseudonym key, a file of the archive is damaged, the disk of the embedded
 * Postgres is filling up, a destination of forwarded events lacks some, or a silence is about to end or hides a critical alert. Also ends the alerts of zones that no process watches any more.
 * Everything but the disk is read from rows, so any replica can run it, and several at once.
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
  const { database, clock, log, zoneIds } = deps;
  const nowMs = clock();
  await watchZones(database.db, zoneIds, { nowMs, breakMs: BREAK_MS });
  const zones = await readZoneHealth(database.db, zoneIds);
  const ofService = [credentialsFingerprint(), keyFingerprint(), diskFingerprint(), archiveFingerprint()];
  const fingerprints = [...ofService, ...zoneIds.map(unpolledFingerprint)];
  const rows = await readNewestAlerts(database.db, fingerprints);
  const seen = (fingerprint: string) => {
    const row = rows.get(fingerprint) ?? null;
    return { fingerprint, nowMs, row, alert: row === null ? null : toAlertRecord(row) };
  };
  const silences = await readActiveSilences(database.db, log, nowMs);
  const context = { routing: deps.routing(), silences, nowMs };
  const alerting: SelfAlertDeps = { database, log, routeOf: (subject) => routeSelf(context, subject) };
  const about = "service";
  const key = seen(credentialsFingerprint());
  const refusal = assessCredentials(nowMs, key.alert, zones);
  let written = Number(await raiseSelfAlert(alerting, { about, ...key, zoneId: null, news: refusal }));
  const pseudonymKey = seen(keyFingerprint());
  const problem = await readKeyProblem(database.db, KEY_REPORT_MS);
  const held = await readHeldCounts(database.db);
  const missing = assessKey(nowMs, pseudonymKey.alert, { problem, held });
  written += Number(await raiseSelfAlert(alerting, { about, ...pseudonymKey, zoneId: null, news: missing }));
  for (const zone of zones) {
    const quiet = seen(unpolledFingerprint(zone.zoneId));
    const news = assessUnpolled(nowMs, quiet.alert, zone, unpolledLimit(deps.pollEveryMs));
    written += Number(await raiseSelfAlert(alerting, { about, ...quiet, zoneId: zone.zoneId, news }));
  }
  const archive = seen(archiveFingerprint());
  const damaged = assessArchive(nowMs, archive.alert, await readDamagedFiles(database.db));
  written += Number(await raiseSelfAlert(alerting, { about, ...archive, zoneId: null, news: damaged }));
  const space = deps.readDisk?.() ?? null;
  if (space !== null) {
    const disk = seen(diskFingerprint());
    const news = assessDisk(nowMs, disk.alert, space, await readGrowth());
    written += Number(await raiseSelfAlert(alerting, { about, ...disk, zoneId: null, news }));
  }
  written += await reportDestinations(alerting, deps.destinations ?? [], nowMs);
  written += await reportSilences(alerting, nowMs);
  written += await endUnwatched(deps, nowMs);
  if (written > 0) await deps.afterAlerts();
}
