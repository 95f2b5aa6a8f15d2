/** Resolves alerts of people and of zones that are no longer watched. */

import {
  type PersonsAct,
  type ResolvedAlert,
  resolveAbandoned,
  resolveByHand,
  toAbandonedMessage,
  toResolvedMessage,
} from "#alerts/rules/act-on-alert.ts";
import { notifiedChannels, toNotifications } from "#alerts/rules/alert-history.ts";
import { parseDetails, Transitions, toAlertRecord } from "#alerts/rules/alert-record.ts";
import {
  type AlertRow,
  changeAlert,
  describeAlert,
  insertNotifications,
  readNewestAlerts,
  resolveUnnotified,
  type UnnotifiedResolve,
} from "#db/alerts/alerts.ts";
import {
  closeSpike,
  closeUnwatchedSpikes,
  listUnwatchedAlerts,
  lockAlert,
} from "#db/alerts/unwatched-zones.ts";
import type { Database, Queryable } from "#db/client.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { Log } from "#lib/log.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { fingerprintOf } from "#model/fingerprint.ts";

/** Stores the end of an alert that this transaction has locked, with its `resolved` notifications. */
export async function storeResolved(
  tx: Queryable,
  row: AlertRow,
  { alert, channels }: ResolvedAlert,
  { message, atMs }: { readonly message: AlertMessage; readonly atMs: number },
): Promise<void> {
  const { state, transition, transitions } = alert;
  const { id, kind, spikeId, zoneId } = row;
  const resolvedAt = new Date(atMs);
  const moved = { state, transition, transitions: [...transitions], kind, spikeId, zoneId, resolvedAt };
  if (!(await changeAlert(tx, row, moved))) throw new Error(`alert ${id} was changed although it is locked`);
  await describeAlert(tx, id, { details: { message }, spikeId });
  await insertNotifications(tx, toNotifications(message, { notified: channels }, toAlertRecord(row)));
}

/**
 * Resolves the members' alerts that no channel was notified of when a person resolves their incident, because each would
 * otherwise notify by itself. Runs in the incident's transaction. An alert that has changed meanwhile stays as it is.
 */
export async function resolveMembers(
  tx: Queryable,
  members: NonNullable<AlertMessage["members"]>,
  act: PersonsAct,
): Promise<number> {
  const prints = members.map((member) => fingerprintOf({ kind: "spike", ...member }));
  const resolves = [...(await readNewestAlerts(tx, prints)).values()].flatMap((row): UnnotifiedResolve[] => {
    if (row.state === "resolved" || !Transitions.safeParse(row.transitions).success) return [];
    const before = toAlertRecord(row);
    if (notifiedChannels(before).size > 0) return [];
    const { alert } = resolveByHand(before, act);
    const { message } = parseDetails(row.details);
    if (message === null) return [];
    const { state, transition, reason, endedAt, headline } = toResolvedMessage(message, alert, act);
    const changed = { state, transition, reason, endedAt, headline };
    return [{ id: row.id, seen: row.transition, entry: alert.transitions.at(-1), changed }];
  });
  return resolves.length === 0 ? 0 : resolveUnnotified(tx, resolves, act.atMs);
}

/** The next run takes the rest. */
const MOST_ALERTS = 500;

interface EndUnwatchedDeps {
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
