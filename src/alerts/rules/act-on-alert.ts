import { cutText } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import { gravestSeverity, notifiedChannels } from "./alert-history.ts";
import { type AlertRecord, NOBODY, nextAlert, type Transition } from "./alert-record.ts";
import { nameSeries } from "./message/headline.ts";

/** Characters of a note that the headline quotes; the alert keeps the whole note. */
const NOTE_CHARS = 120;

/** An act of a person on an alert. */
export interface PersonsAct {
  /** Hostile text, like the note. */
  readonly by: string;
  readonly note: string | null;
  /** Epoch ms. */
  readonly atMs: number;
}

/**
 * Returns the alert's history with an acknowledgement at its end. The acknowledgement ends the reminders. Channels that
 * were notified of the firing show who acknowledged it, if they can do so without a notification.
 */
export function acknowledge(alert: AlertRecord, act: PersonsAct): Transition[] {
  return addAct(alert, act, { reason: "acknowledged", state: "acknowledged", held: [] });
}

/** Returns the alert's history with the person who has the alert from now on at its end. An empty `to` takes it back. */
export function assign(alert: AlertRecord, act: PersonsAct, to: string): Transition[] {
  return addAct(alert, act, { reason: "assigned", to });
}

/** Returns the alert's history with a comment at its end. */
export function comment(alert: AlertRecord, act: PersonsAct): Transition[] {
  return addAct(alert, act, { reason: "commented" });
}

/** The channels that wait for the end of their quiet hours go on waiting, unless the act ends that. */
function addAct(
  { transition, transitions, state }: AlertRecord,
  act: PersonsAct,
  what: Pick<Transition, "reason"> & Partial<Transition>,
): Transition[] {
  const entry: Transition = {
    transition: transition + 1,
    at: act.atMs,
    state,
    severity: null,
    silencedBy: null,
    mutedBy: null,
    held: transitions.at(-1)?.held ?? [],
    quiet: [],
    waiting: [],
    channels: [],
    hasAdvice: false,
    ...what,
    ...signatureOf(act),
  };
  return [...transitions, entry];
}

/**
 * Returns the alert as resolved by a person, with a `resolved` transition for every channel that was notified of the
 * firing. The alert keeps its spike, so the spike is not raised again; a later spike is, and a further attacker of the
 * incident. `message` is the latest one of the alert.
 */
export function resolveByHand(
  alert: AlertRecord,
  act: PersonsAct,
  message: Pick<AlertMessage, "attackers"> | null = null,
): ResolvedAlert {
  const known = message?.attackers?.map(({ startedAt }) => startedAt / MINUTE_MS) ?? [];
  return resolveNow(alert, act.atMs, {
    ...signatureOf(act),
    ...(known.length > 0 && { namedThrough: Math.max(...known) }),
  });
}

/** An alert that nobody judges any more, and why: a clause. */
export interface Abandoned {
  readonly because: string;
  readonly atMs: number;
}

/** Returns an alert that nobody judges any more as resolved. The note in its history says why. */
export function resolveAbandoned(alert: AlertRecord, { because, atMs }: Abandoned): ResolvedAlert {
  return resolveNow(alert, atMs, { note: because });
}

export interface ResolvedAlert {
  readonly alert: AlertRecord;
  readonly channels: string[];
}

function resolveNow(
  alert: AlertRecord,
  nowMs: number,
  signature: Pick<Transition, "by" | "note" | "namedThrough">,
): ResolvedAlert {
  const channels = [...notifiedChannels(alert)];
  const { spikeId: id, firedAtMs: openedAtMs } = alert;
  const occurrence = { id, severity: gravestSeverity(alert), openedAtMs };
  const recipients = { ...NOBODY, notified: channels };
  const next = nextAlert(alert, { reason: "resolved", occurrence, recipients, nowMs });
  const transitions = next.transitions.map((entry) =>
    entry.transition === next.transition ? { ...entry, ...signature } : entry,
  );
  return { alert: { ...next, transitions }, channels };
}

/**
 * Returns the message for the channels: the alert's last message, as resolved. The headline names the person, because
 * the attack may continue.
 * @throws {ZodError} if the stored message cannot be read
 */
export function toResolvedMessage(stored: unknown, alert: AlertRecord, act: PersonsAct): AlertMessage {
  return toEnd(alertMessage.parse(stored), alert, { atMs: act.atMs, because: `Resolved by ${signOff(act)}` });
}

/**
 * Returns the message for the channels: the alert's last message, as resolved because nobody judges the alert any more.
 * The attack may continue.
 * @throws {ZodError} if the stored message cannot be read
 */
export function toAbandonedMessage(
  stored: unknown,
  alert: AlertRecord,
  { because, atMs }: Abandoned,
): AlertMessage {
  return toEnd(alertMessage.parse(stored), alert, { atMs, because: `Resolved, because ${because}` });
}

function toEnd(
  message: AlertMessage,
  { transition }: AlertRecord,
  { atMs, because }: { readonly atMs: number; readonly because: string },
): AlertMessage {
  return {
    ...message,
    transition,
    reason: "resolved",
    state: "resolved",
    endedAt: Math.max(atMs, message.startedAt),
    headline: `${because}: ${nameWhat(message)}`,
  };
}

/**
 * Returns the message for the channels: the alert's last message, as acknowledged. `takenBy` is the person who
 * acknowledged the alert before, if the act only adds a note.
 * @throws {ZodError} if the stored message cannot be read
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

/**
 * Returns the message for the channels: the alert's last message, with who has the alert.
 * @throws {ZodError} if the stored message cannot be read
 */
export function toAssignedMessage(
  stored: unknown,
  transition: number,
  { to, ...act }: PersonsAct & { readonly to: string },
): AlertMessage {
  const message = alertMessage.parse(stored);
  const what = to === "" ? "Taken back" : `Assigned to ${to}`;
  return {
    ...message,
    transition,
    reason: "assigned",
    assignedTo: to === "" ? undefined : to,
    headline: `${what} by ${signOff(act)}: ${message.headline}`,
  };
}

/** Omits the counts of the firing, because they do not describe its end. */
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
