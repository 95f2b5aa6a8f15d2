import { lockAlert } from "#db/alerting/alert-acts.ts";
import { closeSpike, closeUnwatchedSpikes, listUnwatchedAlerts } from "#db/alerting/unwatched-zones.ts";
import type { Database } from "#db/client.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { Log } from "#lib/log.ts";
import { resolveAbandoned, toAbandonedMessage } from "#stages/alerting/act-on-alert.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { toAlertRecord } from "#stages/alerting/alert-record.ts";
import { storeResolved } from "./resolve-alert.ts";

/** The next run takes the rest. */
const MOST_ALERTS = 500;

export interface EndUnwatchedDeps {
  readonly database: Database;
  readonly log: Pick<Log, "info" | "error">;
}

/**
 * Resolves the alerts of zones that left the configuration of every process an hour ago, and closes their spikes.
 * Nobody judges them any more, so they would stay open for ever. Returns how many alerts were resolved. Several replicas
 * may run this at once: an alert is resolved under its lock, and only if it is open then.
 */
export async function endUnwatched({ database, log }: EndUnwatchedDeps, nowMs: number): Promise<number> {
  const found = await listUnwatchedAlerts(database.db, MOST_ALERTS);
  const unwatched = found.map(({ id, zoneId }) => ({ id, because: `zone ${zoneId} is no longer watched` }));
  const { ended, failed } = await endAll({ database, log }, unwatched, nowMs);
  // Only then: raise-alerts resolves the alert of a closed spike, and would give another reason.
  const isWhole = failed === 0 && found.length < MOST_ALERTS;
  const closed = isWhole ? await closeUnwatchedSpikes(database.db, nowMs) : 0;
  const zoneIds = [...new Set(found.map(({ zoneId }) => zoneId))];
  if (ended + closed > 0) log.info({ zoneIds, ended, closed }, "alerts of unwatched zones ended");
  return ended;
}

interface Ending {
  readonly id: number;
  readonly because: string;
}

async function endAll({ database, log }: EndUnwatchedDeps, alerts: readonly Ending[], nowMs: number) {
  const counts = { ended: 0, failed: 0 };
  for (const alert of alerts) {
    try {
      if (await endAlert(database, alert, nowMs)) counts.ended += 1;
    } catch (thrown) {
      // One alert whose history cannot be read does not keep the others open.
      counts.failed += 1;
      log.error({ err: thrown, alertId: alert.id }, "abandoned alert not ended");
    }
  }
  return counts;
}

function endAlert(database: Database, { id, because }: Ending, atMs: number): Promise<boolean> {
  return inTransaction(database, async ({ tx }) => {
    const row = await lockAlert(tx, id);
    if (row === null || row.state === "resolved") return false;
    const ended = resolveAbandoned(toAlertRecord(row), { because, atMs });
    const { message } = parseDetails(row.details);
    if (row.spikeId !== null) await closeSpike(tx, row.spikeId, atMs);
    await storeResolved(tx, row, ended, {
      message: toAbandonedMessage(message, ended.alert, { because, atMs }),
      atMs,
    });
    return true;
  });
}
