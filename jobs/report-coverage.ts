import type { Database } from "../db/client.ts";
import { type AlertRow, readNewestAlerts } from "../db/queries/alerts.ts";
import { type CoverageTrouble, readCoverageTrouble } from "../db/queries/coverage-trouble.ts";
import { assessGaps, assessLoss, gapFingerprint, lossFingerprint } from "../src/alert/coverage-alert.ts";
import { toAlertRecord } from "../src/alert/to-alert-record.ts";
import type { Clock } from "../src/clock.ts";
import { DAY_MS, HOUR_MS, horizonAt } from "../src/coverage/horizon.ts";
import { FIRST_WATCHED } from "../src/coverage/judge-hour.ts";
import type { Log } from "../src/log.ts";
import { type SelfTeller, tellSelf } from "./tell-self.ts";

/** What has expired undecided seal-windows is about to call a gap; where it does not come, that is told. */
const OVERDUE_GRACE_MS = 15 * 60_000;

export interface ReportCoverageDeps {
  readonly database: Database;
  readonly zoneIds: readonly number[];
  readonly clock: Clock;
  readonly log: Log;
  /** Who hears of a zone's trouble. */
  readonly routeOf: SelfTeller["routeOf"];
  /** Since when each zone was seen with hours that have expired undecided, by this process; kept between the calls. */
  readonly overdueSince: Map<number, number>;
}

/**
 * Raises, updates and resolves the alerts about hours that were lost or are about to be: of each kind at most one open
 * per zone. How many transitions were written. Safe beside itself: an alert moves on only from where it was read.
 */
export async function reportCoverage(deps: ReportCoverageDeps): Promise<number> {
  const { database, clock, zoneIds } = deps;
  const nowMs = clock();
  const zones = await readCoverageTrouble(database.db, {
    zoneIds,
    openBeforeMs: nowMs - HOUR_MS + 1,
    // An outage that goes on keeps its alert open; its first gaps count as long as it does.
    sinceMs: nowMs - 120 * DAY_MS,
    exceptReason: FIRST_WATCHED,
  });
  const fingerprints = zones.flatMap(({ zoneId }) => [gapFingerprint(zoneId), lossFingerprint(zoneId)]);
  const rows = await readNewestAlerts(database.db, fingerprints);
  let written = 0;
  for (const zone of zones) written += await reportZone(deps, zone, rows, nowMs);
  return written;
}

async function reportZone(
  deps: ReportCoverageDeps,
  { zoneId, oldestOpenAt, watchedSince, gaps }: CoverageTrouble,
  rows: ReadonlyMap<string, AlertRow>,
  nowMs: number,
): Promise<number> {
  const [gapPrint, lossPrint] = [gapFingerprint(zoneId), lossFingerprint(zoneId)];
  const [gapRow, lossRow] = [rows.get(gapPrint) ?? null, rows.get(lossPrint) ?? null];
  const gapNews = assessGaps(nowMs, zoneId, gapRow && toAlertRecord(gapRow), gaps);
  const isGapTold = gapNews !== null && gapNews.reason !== "resolved";
  const expiresAt = oldestOpenAt === null ? null : oldestOpenAt - horizonAt(nowMs) + nowMs;
  const isWaiting = isDecidedSoon(deps, zoneId, expiresAt, nowMs);
  const hoursLeft = expiresAt === null ? null : Math.max(0, expiresAt - nowMs) / HOUR_MS;
  const standing = { hoursLeft, watchedSince, isGapTold: isGapTold || isWaiting };
  const lossNews = assessLoss(nowMs, zoneId, lossRow && toAlertRecord(lossRow), standing);
  const about = "coverage";
  const gap = { about, zoneId, fingerprint: gapPrint, row: gapRow, news: gapNews, nowMs };
  const loss = { about, zoneId, fingerprint: lossPrint, row: lossRow, news: lossNews, nowMs };
  return Number(await tellSelf(deps, gap)) + Number(await tellSelf(deps, loss));
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
  const since = overdueSince.get(zoneId) ?? nowMs;
  overdueSince.set(zoneId, since);
  return nowMs - since < OVERDUE_GRACE_MS;
}
