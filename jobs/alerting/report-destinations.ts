import { readNewestAlerts } from "#db/alerting/alerts.ts";
import { readArrivalTrouble, readDestinations } from "#db/delivery/forwarding/forward-destinations.ts";
import { toAlertRecord } from "#stages/alerting/alert-record.ts";
import { assessForwarding, forwardFingerprint } from "#stages/alerting/self/forward-alert.ts";
import { raiseSelfAlert, type SelfAlertDeps } from "./raise-self-alert.ts";

/**
 * Raises, updates and resolves one alert per destination of forwarded events: it accepts none, hours differ, or events were
 * refused. A destination that is not configured any more resolves. Returns the number of transitions written.
 */
export async function reportDestinations(
  alerting: SelfAlertDeps,
  configured: readonly string[],
  nowMs: number,
): Promise<number> {
  const { db } = alerting.database;
  const known = await readDestinations(db);
  const rows = await readNewestAlerts(db, [...known.keys()].map(forwardFingerprint));
  let written = 0;
  for (const [destination, health] of known) {
    const fingerprint = forwardFingerprint(destination);
    const row = rows.get(fingerprint) ?? null;
    const trouble = configured.includes(destination)
      ? { ...health, ...(await readArrivalTrouble(db, destination)) }
      : null;
    const alert = row === null ? null : toAlertRecord(row);
    const news = assessForwarding(nowMs, alert, { destination, trouble });
    const given = {
      about: "forwarding",
      fingerprint,
      row,
      news,
      nowMs,
      zoneId: null,
      facts: { destination },
    };
    written += Number(await raiseSelfAlert(alerting, given));
  }
  return written;
}
