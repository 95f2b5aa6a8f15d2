/** Reports what silences hide and when they end. */

import { parseDetails, toAlertRecord } from "#alerts/rules/alert-record.ts";
import {
  assessHidden,
  assessSilenceEnd,
  hiddenFingerprint,
  type MutedFiring,
  silenceEndFingerprint,
} from "#alerts/rules/self/silence-alert.ts";
import {
  type SignedSilence,
  type SilencedAlert,
  toSilencedAlert,
  toSilences,
  wouldMute,
} from "#alerts/rules/silence.ts";
import { listAlerts } from "#db/alerts/alert-reports.ts";
import { readNewestAlerts } from "#db/alerts/alerts.ts";
import { readSilences } from "#db/alerts/silences.ts";
import type { Database, Queryable } from "#db/client.ts";
import type { Log } from "#lib/log.ts";
import { UNRESOLVED_STATES } from "#model/kinds.ts";
import { raiseSelfAlert, type SelfAlertDeps } from "./persist-transition.ts";

/** The most firing alerts that are compared with silences, the worst first. */
const MOST_ALERTS = 5_000;

/**
 * Raises an alert when a silence that mutes firing alerts is about to end, and when it has hidden a critical alert.
 * Resolves it when the silence ends. Returns the number of transitions written. Several replicas may run this at once.
 */
export async function reportSilences(deps: SelfAlertDeps, nowMs: number): Promise<number> {
  const { db } = deps.database;
  // A silence may have ended while the service was down.
  const own = await listAlerts(db, {
    states: UNRESOLVED_STATES,
    kinds: ["self"],
    limit: MOST_ALERTS,
  });
  const sinceMs = Math.min(nowMs, ...own.map(({ firedAt }) => firedAt.getTime()));
  const silences = toSilences(await readSilences(db, { fromMs: sinceMs, toMs: nowMs }));
  if (silences.length === 0) return 0;
  const firing = await readFiring(deps.database);
  const known = await readNewestAlerts(
    db,
    silences.flatMap(({ id }) => [silenceEndFingerprint(id), hiddenFingerprint(id)]),
  );
  let written = 0;
  for (const silence of silences) {
    const muted =
      silence.expiresAtMs > nowMs ? firing.filter((one) => wouldMute(silence.matchers, one.alert)) : [];
    for (const [fingerprint, assess] of [
      [silenceEndFingerprint(silence.id), assessSilenceEnd],
      [hiddenFingerprint(silence.id), assessHidden],
    ] as const) {
      const row = known.get(fingerprint) ?? null;
      const news = assess(nowMs, row === null ? null : toAlertRecord(row), silence, muted);
      const given = { about: "silence", fingerprint, zoneId: zoneOf(silence), row, news, nowMs };
      if (await raiseSelfAlert(deps, given)) written += 1;
    }
  }
  return written;
}

async function readFiring({ db }: Database): Promise<(MutedFiring & { alert: SilencedAlert })[]> {
  const rows = await listAlerts(db, { states: ["firing"], sort: "worst", limit: MOST_ALERTS });
  return rows.map((row) => {
    const headline = parseDetails(row.details).message?.headline ?? null;
    return { id: row.id, headline, record: toAlertRecord(row), alert: toSilencedAlert(row) };
  });
}

/** Keys for one zone see the alert only if the silence is for that zone alone. */
function zoneOf({ matchers: { zone = [] } }: SignedSilence): number | null {
  const [only = null, ...others] = zone;
  return others.length === 0 ? only : null;
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
