import { z } from "zod";
import type { Database } from "../db/client.ts";
import { type AlertRow, describeAlert, readNewestAlerts } from "../db/queries/alerts.ts";
import { readZoneHealth, watchZones } from "../db/queries/platform-health.ts";
import { inTransaction } from "../db/transaction.ts";
import type { CoverageNews } from "../src/alert/coverage-alert.ts";
import {
  assessCredentials,
  assessQuiet,
  credentialsFingerprint,
  quietFingerprint,
  quietLimit,
} from "../src/alert/service-alert.ts";
import { toAlertRecord } from "../src/alert/to-alert-record.ts";
import type { Clock } from "../src/clock.ts";
import type { Log } from "../src/log.ts";
import { type AnyJob, defineJob } from "../src/queue/define-job.ts";
import { writeSelfAlert } from "./write-self-alert.ts";

/** Rung every minute: after so long without a look the service was away, and has to be given time to poll. */
const BREAK_MS = 5 * 60_000;

export interface ReportServiceDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly zoneIds: readonly number[];
  /** Names of the configured channels. */
  readonly channels: readonly string[];
  readonly pollEveryMs: number;
  /** Told when something was written for the channels. */
  readonly afterAlerts: () => Promise<void>;
}

/**
 * Raises, updates and resolves the alerts of Longwatch about its sight: the platform refuses the access key, or nothing was
 * polled of a zone. From rows alone, so it does not matter which replica polls and which one looks. Safe beside itself.
 */
export function createReportServiceJob(deps: ReportServiceDeps): AnyJob {
  return defineJob({
    name: "report-service",
    queue: "alerts",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 30_000,
    run: () => reportService(deps),
  });
}

async function reportService(deps: ReportServiceDeps): Promise<void> {
  const { database, clock, zoneIds } = deps;
  const nowMs = clock();
  await watchZones(database.db, zoneIds, { nowMs, breakMs: BREAK_MS });
  const zones = await readZoneHealth(database.db, zoneIds);
  const fingerprints = [credentialsFingerprint(), ...zoneIds.map(quietFingerprint)];
  const rows = await readNewestAlerts(database.db, fingerprints);
  const seen = (fingerprint: string) => {
    const row = rows.get(fingerprint) ?? null;
    return { fingerprint, nowMs, row, alert: row === null ? null : toAlertRecord(row) };
  };
  const key = seen(credentialsFingerprint());
  let written = await tell(deps, { ...key, zoneId: null, news: assessCredentials(nowMs, key.alert, zones) });
  for (const zone of zones) {
    const quiet = seen(quietFingerprint(zone.zoneId));
    const news = assessQuiet(nowMs, quiet.alert, zone, quietLimit(deps.pollEveryMs));
    written += await tell(deps, { ...quiet, zoneId: zone.zoneId, news });
  }
  if (written > 0) await deps.afterAlerts();
}

interface Telling {
  readonly fingerprint: string;
  readonly zoneId: number | null;
  /** The newest alert of the fingerprint. */
  readonly row: AlertRow | null;
  readonly news: CoverageNews | null;
  readonly nowMs: number;
}

/** How many transitions were written. */
async function tell({ database, log, channels }: ReportServiceDeps, telling: Telling): Promise<number> {
  const { fingerprint, zoneId, row, news, nowMs } = telling;
  if (news === null) return 0;
  const { reason, severity, headline, openedAtMs } = news;
  if (reason === "none") {
    if (row !== null) await describe(database, row, headline);
    return 0;
  }
  const open = reason === "first" ? null : row;
  const change = { fingerprint, zoneId, row: open, reason, severity, headline, openedAtMs, nowMs, channels };
  if (!(await inTransaction(database, ({ tx }) => writeSelfAlert(tx, change)))) return 0;
  if (reason === "resolved") log.info({ zoneId, headline }, "service recovered");
  else log.error({ zoneId, headline }, "service failed");
  return 1;
}

/** Brings an open alert's words up to date; nobody is paged for it. */
async function describe({ db }: Database, row: AlertRow, headline: string): Promise<void> {
  const { message } = row.details as { message?: { headline: string } };
  if (message === undefined || message.headline === headline) return;
  await describeAlert(db, row.id, { details: { message: { ...message, headline } }, spikeId: null });
}
