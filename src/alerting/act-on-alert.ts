import { cutText } from "../lib/plain-text.ts";
import { type AlertMessage, alertMessage } from "../model/alert-message.ts";
import { gravestSeverity, notifiedChannels } from "./alert-history.ts";
import { type AlertRecord, NOBODY, nextAlert, type Transition } from "./alert-record.ts";
import { nameSeries } from "./message/headline.ts";

/** Of a note in a headline; the whole of it is with the alert. */
const NOTE_CHARS = 120;

/** What a person does to an alert. */
export interface PersonsAct {
  /** Hostile text, like the note. */
  readonly by: string;
  readonly note: string | null;
  /** Epoch ms. */
  readonly atMs: number;
}

/**
 * The alert's history with an acknowledgement at its end: it ends the repeats, and whoever was told of the firing is told
 * who is on it, where a channel can show that without ringing again.
 */
export function acknowledge(alert: AlertRecord, act: PersonsAct): Transition[] {
  const entry: Transition = {
    transition: alert.transition + 1,
    at: act.atMs,
    reason: "acknowledged",
    state: "acknowledged",
    severity: null,
    silencedBy: null,
    mutedBy: null,
    held: [],
    quiet: [],
    waiting: [],
    channels: [],
    hasAdvice: false,
    ...signatureOf(act),
  };
  return [...alert.transitions, entry];
}

/**
 * The alert resolved by a person: the lifecycle's own transition, for every channel that was told of the firing. The spike
 * stays the one it covers, so that it is not raised again; only a later spike is.
 */
export function resolveByHand(
  alert: AlertRecord,
  act: PersonsAct,
): { alert: AlertRecord; channels: string[] } {
  const channels = [...notifiedChannels(alert)];
  const { spikeId: id, firedAtMs: openedAtMs } = alert;
  const occurrence = { id, severity: gravestSeverity(alert), openedAtMs };
  const recipients = { ...NOBODY, notified: channels };
  const next = nextAlert(alert, { reason: "resolved", occurrence, recipients, nowMs: act.atMs });
  const transitions = next.transitions.map((entry) =>
    entry.transition === next.transition ? { ...entry, ...signatureOf(act) } : entry,
  );
  return { alert: { ...next, transitions }, channels };
}

/**
 * What the channels are told of it: the last message, ended. Its headline says who, because the attack may well go on.
 * @throws {ZodError} when the stored message is not one.
 */
export function toResolvedMessage(stored: unknown, alert: AlertRecord, act: PersonsAct): AlertMessage {
  const message = alertMessage.parse(stored);
  return {
    ...message,
    transition: alert.transition,
    reason: "resolved",
    state: "resolved",
    endedAt: Math.max(act.atMs, message.startedAt),
    headline: `Resolved by ${signOff(act)}: ${nameWhat(message)}`,
  };
}

/**
 * What the channels are told of an acknowledgement: the last message, taken on. `takenBy` is who acknowledged the alert
 * before, where the act only adds a note.
 * @throws {ZodError} when the stored message is not one.
 */
export function toAcknowledgedMessage(
  stored: unknown,
  transition: number,
  act: PersonsAct & { readonly takenBy?: string | null },
): AlertMessage {
  const message = alertMessage.parse(stored);
  const { takenBy = null, by } = act;
  const who = takenBy === null || takenBy === by ? signOff(act) : `${takenBy}, note by ${signOff(act)}`;
  return {
    ...message,
    transition,
    reason: "acknowledged",
    state: "acknowledged",
    headline: `Acknowledged by ${who}: ${message.headline}`,
  };
}

/** What was counted while it fired says nothing about its end. */
function nameWhat({ zoneId, zoneName, ruleId, headline }: AlertMessage): string {
  return zoneId === null || ruleId === null ? headline : nameSeries({ zoneId, zoneName, ruleId });
}

/** `alice (on it)`. */
function signOff({ by, note }: PersonsAct): string {
  return note === null || note.trim() === "" ? by : `${by} (${cutText(note.trim(), NOTE_CHARS)})`;
}

function signatureOf({ by, note }: PersonsAct): { by: string; note?: string } {
  return note === null ? { by } : { by, note };
}
