import { acknowledgeAlert, lockAlert } from "../../db/alerting/alert-acts.ts";
import { type AlertRow, changeAlert, describeAlert, insertNotifications } from "../../db/alerting/alerts.ts";
import type { Database, Queryable } from "../../db/client.ts";
import { writeAuditEntry } from "../../db/keys/audit-entries.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { resolveMembers } from "../../jobs/alerting/resolve-members.ts";
import {
  acknowledge,
  type PersonsAct,
  resolveByHand,
  toAcknowledgedMessage,
  toResolvedMessage,
} from "../alerting/act-on-alert.ts";
import { parseDetails } from "../alerting/alert-details.ts";
import { notifiedChannels } from "../alerting/alert-history.ts";
import { toAlertRecord } from "../alerting/alert-record.ts";
import { toNotifications } from "../alerting/to-notifications.ts";
import { maskText } from "../archive/mask/mask-text.ts";

export interface AlertAct extends PersonsAct {
  readonly alertId: number;
  /** What the audit trail calls them; by default their name. */
  readonly actor?: string;
}

/**
 * `unchanged`: the alert had that state already, by another act or by the service; nothing was written. `noted`: so it had,
 * and the note was added.
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
 * Acknowledges a firing alert: it repeats no more, and getting worse is still told. Leaves in the same transaction an
 * `acknowledged` for every channel that was told of it; the delivery drops those whose channel has no way to show it. Of
 * two at once one does it. Of an alert that is acknowledged already, a new note is added in the same way.
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
    const told = toAcknowledgedMessage(message, transitions.length, { ...act, takenBy });
    await insertNotifications(tx, toNotifications(told, { notified: channels }, before));
    return { state: "acknowledged", channels };
  });
}

/** Whether an act has a note that the acknowledged alert does not have yet; the same request sent twice adds it once. */
function hasNewNote({ by, note }: AlertAct, row: AlertRow): boolean {
  if (row.state !== "acknowledged" || note === null || note.trim() === "") return false;
  const latest = toAlertRecord(row).transitions.findLast(({ reason }) => reason === "acknowledged");
  return latest?.by !== by || latest.note !== note;
}

/**
 * Resolves an alert and leaves in the same transaction a `resolved` for every channel that was told of it. Of two at once,
 * or of one and raise-alerts, one does it. Of one that speaks for many, what nobody has heard of ends with it.
 */
export function resolveAlert(database: Database, act: AlertAct): Promise<ActResult> {
  return change(database, act, "unresolved", async (tx, row) => {
    const before = toAlertRecord(row);
    const { alert, channels } = resolveByHand(before, act);
    const { state, transition, transitions } = alert;
    const { kind, spikeId } = row;
    const resolvedAt = new Date(act.atMs);
    const moved = { state, transition, transitions: [...transitions], kind, spikeId, resolvedAt };
    if (!(await changeAlert(tx, row, moved))) throw new Error(`alert ${row.id} moved although it is locked`);
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
