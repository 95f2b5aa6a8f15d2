import { type AlertRecord, toAlertRecord } from "#alerts/rules/alert-record.ts";
import {
  assessGaps,
  assessHorizon,
  assessLoss,
  assessReopened,
  assessSuspicion,
  gapFingerprint,
  horizonFingerprint,
  lossFingerprint,
  type ReopenedHour,
  reopenedFingerprint,
  type SelfChange,
  type SuspectRoute,
  suspicionFingerprint,
} from "#alerts/rules/self/coverage-alert.ts";
import { type AlertRow, readNewestAlerts } from "#db/alerts/alerts.ts";
import { type CoverageTrouble, readCoverageTrouble } from "#db/proof/coverage-report.ts";
import { readHorizon } from "#db/proof/horizons.ts";
import { readSuspicions } from "#db/proof/platform-health.ts";
import { readReopenedHours } from "#db/proof/reopen-hours.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { horizonAt, type KnownHorizon, keptFor } from "#model/horizon.ts";
import { UNPREVENTABLE } from "#proof/rules/judge-hour.ts";
import { raiseSelfAlert, type SelfAlertDeps } from "../alerts/persist-transition.ts";
import type { JobContext } from "../context.ts";

/**
 * seal-windows is about to declare expired undecided hours as gaps. An alert is raised only if it does not within
 * this time.
 */
const OVERDUE_GRACE_MS = 15 * 60_000;

export interface ReportCoverageDeps extends Pick<JobContext, "database" | "zoneIds" | "clock" | "log"> {
  /** Returns the channels for a zone's coverage alerts. */
  readonly routeOf: SelfAlertDeps["routeOf"];
  /** Since when this process has seen expired undecided hours in each zone; kept between the calls. */
  readonly overdueSince: Map<number, number>;
}

/**
 * Raises, updates and resolves the alerts about lost hours, hours that are about to be lost, suspect routes, and
 * hours that stay reopened. At most one alert of each kind is open per zone. Returns the number of transitions
 * written. Several replicas may run this at once: an alert is changed only from the transition that was read.
 */
export async function reportCoverage(deps: ReportCoverageDeps): Promise<number> {
  const { database, clock, zoneIds } = deps;
  const nowMs = clock();
  const zones = await readCoverageTrouble(database.db, {
    zoneIds,
    openBeforeMs: nowMs - HOUR_MS + 1,
    // An outage that continues keeps its alert open, and its first gaps count for as long.
    sinceMs: nowMs - 120 * DAY_MS,
    exceptReasons: UNPREVENTABLE,
  });
  const kinds = [
    gapFingerprint,
    lossFingerprint,
    suspicionFingerprint,
    horizonFingerprint,
    reopenedFingerprint,
  ];
  const fingerprints = zones.flatMap(({ zoneId }) => kinds.map((fingerprintOf) => fingerprintOf(zoneId)));
  const rows = await readNewestAlerts(database.db, fingerprints);
  const suspicions = await readSuspicions(database.db, zoneIds);
  const reopened = await readReopenedHours(database.db, zoneIds);
  let written = 0;
  for (const zone of zones) {
    const { zoneId } = zone;
    const isOfZone = (one: { readonly zoneId: number }) => one.zoneId === zoneId;
    const horizon = await readHorizon(database.db, zoneId);
    written += await reportZone(deps, zone, { rows, horizon, nowMs });
    written += await reportEvidence(
      deps,
      { zoneId, rows, nowMs },
      {
        routes: suspicions.filter(isOfZone),
        hours: reopened.filter(isOfZone),
        horizon,
      },
    );
  }
  return written;
}

/** Reports the zone's suspect routes, its horizon and its reopened hours. Returns the number of transitions written. */
async function reportEvidence(
  deps: ReportCoverageDeps,
  { zoneId, rows, nowMs }: { zoneId: number; rows: ReadonlyMap<string, AlertRow>; nowMs: number },
  {
    routes,
    hours,
    horizon,
  }: {
    readonly routes: readonly SuspectRoute[];
    readonly hours: readonly ReopenedHour[];
    readonly horizon: KnownHorizon;
  },
): Promise<number> {
  const report = (fingerprint: string, assess: (alert: AlertRecord | null) => SelfChange | null) => {
    const row = rows.get(fingerprint) ?? null;
    const news = assess(row && toAlertRecord(row));
    return raiseSelfAlert(deps, { about: "coverage", zoneId, nowMs, fingerprint, row, news });
  };
  const written = [
    await report(suspicionFingerprint(zoneId), (alert) => assessSuspicion(nowMs, zoneId, alert, routes)),
    await report(horizonFingerprint(zoneId), (alert) => assessHorizon(nowMs, zoneId, alert, horizon)),
    await report(reopenedFingerprint(zoneId), (alert) => assessReopened(nowMs, zoneId, alert, hours)),
  ];
  return written.filter(Boolean).length;
}

async function reportZone(
  deps: ReportCoverageDeps,
  { zoneId, oldestOpenAt, watchedSince, gaps }: CoverageTrouble,
  {
    rows,
    horizon,
    nowMs,
  }: {
    readonly rows: ReadonlyMap<string, AlertRow>;
    readonly horizon: KnownHorizon;
    readonly nowMs: number;
  },
): Promise<number> {
  const [gapPrint, lossPrint] = [gapFingerprint(zoneId), lossFingerprint(zoneId)];
  const [gapRow, lossRow] = [rows.get(gapPrint) ?? null, rows.get(lossPrint) ?? null];
  const gapNews = assessGaps(nowMs, zoneId, gapRow && toAlertRecord(gapRow), gaps);
  const isGapReported = gapNews !== null && gapNews.reason !== "resolved";
  const expiresAt =
    oldestOpenAt === null ? null : oldestOpenAt - horizonAt(nowMs, keptFor(horizon, nowMs)) + nowMs;
  const isWaiting = isDecidedSoon(deps, zoneId, expiresAt, nowMs);
  const hoursLeft = expiresAt === null ? null : Math.max(0, expiresAt - nowMs) / HOUR_MS;
  const lossState = { hoursLeft, watchedSince, isGapReported: isGapReported || isWaiting };
  const lossNews = assessLoss(nowMs, zoneId, lossRow && toAlertRecord(lossRow), lossState);
  const about = "coverage";
  const gap = { about, zoneId, fingerprint: gapPrint, row: gapRow, news: gapNews, nowMs };
  const loss = { about, zoneId, fingerprint: lossPrint, row: lossRow, news: lossNews, nowMs };
  return Number(await raiseSelfAlert(deps, gap)) + Number(await raiseSelfAlert(deps, loss));
}

function isDecidedSoon(
  { overdueSince }: ReportCoverageDeps,
  zoneId: number,
  expiresAt: number | null,
  nowMs: number,
): boolean {
  if (expiresAt === null || expiresAt > nowMs) {
    overdueSince.delete(zoneId);
    return false;
  }
  // While the platform still shows a part of the hour, the hour stays undecided. Earlier alerts have warned of it.
  if (expiresAt > nowMs - HOUR_MS) return true;
  const since = overdueSince.get(zoneId) ?? nowMs;
  overdueSince.set(zoneId, since);
  return nowMs - since < OVERDUE_GRACE_MS;
}
