import { acknowledgeAlert, lockAlert } from "#db/alerting/alert-acts.ts";
import { type AlertRow, changeAlert, describeAlert, insertNotifications } from "#db/alerting/alerts.ts";
import type { Database, Queryable } from "#db/client.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { resolveMembers } from "#jobs/alerting/resolve-members.ts";
import {
  acknowledge,
  type PersonsAct,
  resolveByHand,
  toAcknowledgedMessage,
  toResolvedMessage,
} from "#stages/alerting/act-on-alert.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { notifiedChannels } from "#stages/alerting/alert-history.ts";
import { toAlertRecord } from "#stages/alerting/alert-record.ts";
import { toNotifications } from "#stages/alerting/to-notifications.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";

export interface AlertAct extends PersonsAct {
  readonly alertId: number;
  /** The actor in the audit trail. By default the name of the person. */
  readonly actor?: string;
}

/**
 * `unchanged`: the alert already had that state; nothing was written. `noted`: the alert already had that state, and the
 * note was added.
 */
export type ActResult =
  | { readonly kind: "unknown" }
  | { readonly kind: "unchanged"; readonly state: AlertRow["state"] }
  | {
      readonly kind: "noted";
      readonly state: AlertRow["state"];
      readonly by: string | null;
      readonly channels: readonly string[];
    }
  | { readonly kind: "done"; readonly state: AlertRow["state"]; readonly channels: readonly string[] };

/**
 * Acknowledges a firing alert: it gets no more reminders, but its channels are still notified when it gets worse. In
 * the same transaction, writes an `acknowledged` notification for every channel that was notified of the alert; the
 * delivery drops it for channels that cannot show it. If two callers acknowledge at once, one succeeds. A new note of
 * an alert that is already acknowledged is added in the same way.
 */
export async function acknowledgeByHand(database: Database, act: AlertAct): Promise<ActResult> {
  return change(database, act, "firing", async (tx, row) => {
    const before = toAlertRecord(row);
    const transitions = acknowledge(before, act);
    const { message } = parseDetails(row.details);
    const details = message === null ? row.details : { message: { ...message, state: "acknowledged" } };
    const isFirst = row.state === "firing";
    await acknowledgeAlert(tx, row.id, {
      details,
      transitions,
      transition: transitions.length,
      acknowledgedAt: isFirst ? new Date(act.atMs) : row.acknowledgedAt,
      acknowledgedBy: isFirst ? act.by : row.acknowledgedBy,
    });
    const channels = [...notifiedChannels(before)];
    if (channels.length === 0) return { state: "acknowledged", channels };
    const takenBy = isFirst ? null : row.acknowledgedBy;
    const acknowledged = toAcknowledgedMessage(message, transitions.length, { ...act, takenBy });
    await insertNotifications(tx, toNotifications(acknowledged, { notified: channels }, before));
    return { state: "acknowledged", channels };
  });
}

/** Returns whether the note is new for the acknowledged alert. The same request sent twice adds the note once. */
function hasNewNote({ by, note }: AlertAct, row: AlertRow): boolean {
  if (row.state !== "acknowledged" || note === null || note.trim() === "") return false;
  const latest = toAlertRecord(row).transitions.findLast(({ reason }) => reason === "acknowledged");
  return latest?.by !== by || latest.note !== note;
}

/**
 * Resolves an alert. In the same transaction, writes a `resolved` notification for every channel that was notified of the
 * alert. If two callers, or a caller and raise-alerts, resolve at once, one succeeds. Members of a group alert that were
 * not notified by themselves resolve with it.
 */
export function resolveAlert(database: Database, act: AlertAct): Promise<ActResult> {
  return change(database, act, "unresolved", async (tx, row) => {
    const before = toAlertRecord(row);
    const { alert, channels } = resolveByHand(before, act);
    const { state, transition, transitions } = alert;
    const { kind, spikeId, zoneId } = row;
    const resolvedAt = new Date(act.atMs);
    const moved = { state, transition, transitions: [...transitions], kind, spikeId, zoneId, resolvedAt };
    if (!(await changeAlert(tx, row, moved)))
      throw new Error(`alert ${row.id} was changed although it is locked`);
    const message = toResolvedMessage(parseDetails(row.details).message, alert, act);
    await describeAlert(tx, row.id, { details: { message }, spikeId });
    await insertNotifications(tx, toNotifications(message, { notified: channels }, before));
    await resolveMembers(tx, message.members ?? [], act);
    return { state, channels };
  });
}

type Change = (
  tx: Queryable,
  row: AlertRow,
) => Promise<{ state: AlertRow["state"]; channels: readonly string[] }>;

function change(
  database: Database,
  act: AlertAct,
  from: "firing" | "unresolved",
  write: Change,
): Promise<ActResult> {
  const { alertId, by, note, actor = by } = act;
  return inTransaction(database, async ({ tx }) => {
    const row = await lockAlert(tx, alertId);
    if (row === null) return { kind: "unknown" };
    const isOpen = row.state === "firing" || (from === "unresolved" && row.state === "acknowledged");
    const isNote = from === "firing" && hasNewNote(act, row);
    if (!isOpen && !isNote) return { kind: "unchanged", state: row.state };
    const done = await write(tx, row);
    const details = {
      from: row.state,
      channels: done.channels,
      ...(note === null ? {} : { note: maskText(note) }),
    };
    await writeAuditEntry(tx, {
      actor: maskText(actor),
      action: `alert.${done.state}`,
      subject: `alert ${alertId}`,
      details,
    });
    return isNote ? { kind: "noted", by: row.acknowledgedBy, ...done } : { kind: "done", ...done };
  });
}
