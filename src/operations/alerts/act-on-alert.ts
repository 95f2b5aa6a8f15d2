import { z } from "zod";
import { acknowledgeAlert, lockAlert } from "#db/alerting/alert-acts.ts";
import {
  type AlertRow,
  addResolvedAttacker,
  changeAlert,
  describeAlert,
  insertNotifications,
  lockSpike,
} from "#db/alerting/alerts.ts";
import type { Queryable } from "#db/client.ts";
import { resolveMembers } from "#jobs/alerting/resolve-members.ts";
import { attackerIdOf } from "#model/attacker.ts";
import { ACT_RESULTS, ALERT_STATES, type StateAct } from "#model/kinds.ts";
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
import { toAlertSpike } from "#stages/alerting/alert-spike.ts";
import { toNotifications } from "#stages/alerting/to-notifications.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";
import { lineOf, Name, notFound, RowId } from "../fields.ts";
import { type AuditNote, type Changing, defineChange } from "../operation.ts";
import { Refusal } from "../refusal.ts";
import { findAttacker } from "../silences/plan-silence.ts";
import { findAlert } from "./alert.ts";

export interface AlertAct extends PersonsAct {
  readonly alertId: number;
}

/**
 * `unchanged`: the alert already had that state; nothing was written. `noted`: the alert already had that state, and the
 * note was added.
 */
type ActResult =
  | { readonly kind: "unknown" }
  | { readonly kind: "unchanged"; readonly state: AlertRow["state"] }
  | {
      readonly kind: "done" | "noted";
      readonly state: AlertRow["state"];
      /** The person who acknowledged the alert first. */
      readonly acknowledgedBy: string | null;
      readonly channels: readonly string[];
    };

interface Acted {
  readonly result: ActResult;
  readonly audit: AuditNote | null;
}

/**
 * Acknowledges a firing alert: it gets no more reminders, but its channels are still notified when it gets worse. In
 * the same transaction, writes an `acknowledged` notification for every channel that was notified of the alert; the
 * delivery drops it for channels that cannot show it. If two callers acknowledge at once, one succeeds. A new note of
 * an alert that is already acknowledged is added in the same way.
 */
export async function acknowledgeByHand(tx: Queryable, act: AlertAct): Promise<Acted> {
  return change(tx, act, "firing", async (row) => {
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
 * alert. If two callers, or a caller and raise-alerts, resolve at once, one succeeds. Alerts of rules that are
 * part of an incident and were not notified by themselves resolve with it.
 */
export function resolveByPerson(tx: Queryable, act: AlertAct): Promise<Acted> {
  return change(tx, act, "unresolved", async (row) => {
    const before = toAlertRecord(row);
    const stored = parseDetails(row.details).message;
    const { alert, channels } = resolveByHand(before, act, stored);
    const { state, transition, transitions } = alert;
    const { kind, spikeId, zoneId } = row;
    const resolvedAt = new Date(act.atMs);
    const moved = { state, transition, transitions: [...transitions], kind, spikeId, zoneId, resolvedAt };
    if (!(await changeAlert(tx, row, moved)))
      throw new Error(`alert ${row.id} was changed although it is locked`);
    const message = toResolvedMessage(stored, alert, act);
    await describeAlert(tx, row.id, { details: { message }, spikeId });
    await insertNotifications(tx, toNotifications(message, { notified: channels }, before));
    await resolveMembers(tx, message.members ?? [], act);
    return { state, channels };
  });
}

/**
 * Resolves one attacker of an incident: messages no longer name it, and it makes no news, until the incident ends. If no other
 * attacker is active, the alert is resolved. A text says why the attacker cannot be resolved.
 */
export async function resolveAttacker(
  tx: Queryable,
  act: AlertAct,
  named: { readonly masked: boolean; readonly attacker: string },
): Promise<Acted | string> {
  const row = await lockAlert(tx, act.alertId);
  if (row === null) return { result: { kind: "unknown" }, audit: null };
  const { id, state, spikeId } = row;
  if (state === "resolved") return { result: { kind: "unchanged", state }, audit: null };
  const stored = spikeId === null ? null : await lockSpike(tx, spikeId);
  const found = findAttacker(row, stored?.sources?.findings ?? [], named);
  if (typeof found === "string") return found;
  if (stored === null) throw new Error(`alert ${id} has an attacker and no spike`);
  const attacker = attackerIdOf(found);
  const others = toAlertSpike(stored).attackers?.filter((one) => one.id !== attacker) ?? [];
  await addResolvedAttacker(tx, stored.id, attacker);
  if (others.length === 0) return resolveByPerson(tx, act);
  const { message } = parseDetails(row.details);
  const attackers = message?.attackers?.map((one) =>
    attackerIdOf(one) === attacker ? { ...one, isActive: false, isResolved: true } : one,
  );
  if (message !== null)
    await describeAlert(tx, id, { details: { message: { ...message, attackers } }, spikeId });
  const note = act.note === null ? {} : { note: maskText(act.note) };
  return {
    result: { kind: "done", state, acknowledgedBy: row.acknowledgedBy, channels: [] },
    audit: {
      action: "alert.attacker_resolved",
      subject: `alert ${id}`,
      details: { attacker: maskText(attacker), ...note },
    },
  };
}

type Change = (row: AlertRow) => Promise<{ state: AlertRow["state"]; channels: readonly string[] }>;

async function change(
  tx: Queryable,
  act: AlertAct,
  from: "firing" | "unresolved",
  write: Change,
): Promise<Acted> {
  const { alertId, note } = act;
  const row = await lockAlert(tx, alertId);
  if (row === null) return { result: { kind: "unknown" }, audit: null };
  const isOpen = row.state === "firing" || (from === "unresolved" && row.state === "acknowledged");
  const isNote = from === "firing" && hasNewNote(act, row);
  if (!isOpen && !isNote) return { result: { kind: "unchanged", state: row.state }, audit: null };
  const done = await write(row);
  return {
    result: { kind: isNote ? "noted" : "done", acknowledgedBy: row.acknowledgedBy, ...done },
    audit: {
      action: `alert.${done.state}`,
      subject: `alert ${alertId}`,
      details: {
        from: row.state,
        channels: done.channels,
        ...(note === null ? {} : { note: maskText(note) }),
      },
    },
  };
}

export const Note = lineOf(500).optional().describe("A reason, shown to everyone who looks at the alert.");

export const ackAlert = defineChange({
  ...describeAct("ack"),
  name: "alerts.ack",
  summary: "Acknowledge an alert, which stops its repeats",
  refuses: [409],
  run: (changing, input) => actOn(changing, input, acknowledgeByHand),
});

export const resolveAlert = defineChange({
  ...describeAct("resolve"),
  name: "alerts.resolve",
  summary: "Resolve an alert and notify the channels that it notified",
  run: (changing, input) => actOn(changing, input, resolveByPerson),
});

function describeAct<const Act extends StateAct>(act: Act) {
  return {
    http: ["POST", `/api/v1/alerts/:id/${act}`] as const,
    tag: "Alerts",
    scope: "act" as const,
    input: z.strictObject({ id: RowId, note: Note }),
    output: z.object({
      id: z.number().int(),
      state: z.enum(ALERT_STATES),
      result: z
        .enum(ACT_RESULTS)
        .describe(
          "done: the state was changed. unchanged: the alert already had that state. noted: the alert already had that state, and the note was added.",
        ),
      channels: z.array(Name).describe("The channels that are notified or updated."),
    }),
    example: { id: "17", note: "on it" },
  };
}

async function actOn(
  { caller, tx, now }: Changing,
  { id, note }: { readonly id: number; readonly note?: string | undefined },
  act: typeof acknowledgeByHand,
) {
  await findAlert(tx, caller, id);
  const { result, audit } = await act(tx, { alertId: id, by: caller.name, note: note ?? null, atMs: now });
  if (result.kind === "unknown") throw notFound(`alert ${id}`);
  if (act === acknowledgeByHand && result.kind === "unchanged" && result.state === "resolved")
    throw new Refusal(409, {
      slug: "alert-resolved",
      detail: `Alert ${id} is already resolved. Only firing or acknowledged alerts can be acknowledged.`,
    });
  const channels = result.kind === "unchanged" ? [] : [...result.channels];
  return { output: { id, state: result.state, result: result.kind, channels }, audit };
}
