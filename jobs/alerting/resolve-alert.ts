import {
  type AlertRow,
  changeAlert,
  describeAlert,
  insertNotifications,
  type QuietResolve,
  readNewestAlerts,
  resolveQuietly,
} from "#db/alerting/alerts.ts";
import type { Queryable } from "#db/client.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import {
  type PersonsAct,
  type ResolvedAlert,
  resolveByHand,
  toResolvedMessage,
} from "#stages/alerting/act-on-alert.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { notifiedChannels } from "#stages/alerting/alert-history.ts";
import { Transitions, toAlertRecord } from "#stages/alerting/alert-record.ts";
import { toNotifications } from "#stages/alerting/to-notifications.ts";

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
  const resolves = [...(await readNewestAlerts(tx, prints)).values()].flatMap((row): QuietResolve[] => {
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
  return resolves.length === 0 ? 0 : resolveQuietly(tx, resolves, act.atMs);
}
