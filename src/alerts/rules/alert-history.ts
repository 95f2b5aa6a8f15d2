/** What an alert's transitions say, and the notifications of the next one. */

import type { AlertMessage } from "#model/alert-message.ts";
import { notificationKeyOf } from "#model/fingerprint.ts";
import { type MuteKind, REASONS, type Severity } from "#model/kinds.ts";
import { type StoredVerdict, turns } from "#model/verdict.ts";
import { ENDINGS, GOES_ON, gravestOf, isEnding, isPersons, NOTICED } from "#model/words.ts";
import { type AlertRecord, isMuted, type Recipients, type Transition } from "./alert-record.ts";

/** A verdict delays no reminder and no new attacker. */
const SENT: readonly string[] = REASONS.filter(
  (reason) => !isPersons(reason) && reason !== "verdict" && reason !== "turned",
);
/** Returns who has the alert; null if nobody has. */
export function assigneeOf({ transitions }: Pick<AlertRecord, "transitions">): string | null {
  return transitions.findLast(({ reason }) => reason === "assigned")?.to || null;
}

const endsAlert = ({ reason }: Transition) => isEnding(reason);

/** Returns how often an unresolved alert has fired again after a resolve. */
export function countReopenings(alert: AlertRecord): number {
  return alert.transitions.filter(endsAlert).length;
}

/** Returns the highest severity since the alert last began to fire. A higher one is `worse`. */
export function gravestSeverity(alert: AlertRecord): Severity {
  return gravestOf(severitiesOf(sinceResolve(alert)));
}

/** Returns the highest severity that any channel was sent since the alert last began to fire. */
export function gravestNotified(alert: AlertRecord): Severity {
  return gravestOf(severitiesOf(sinceResolve(alert).filter(({ channels }) => channels.length > 0)));
}

function severitiesOf(entries: readonly Transition[]): Severity[] {
  return entries.map((entry) => entry.severity ?? "info");
}

/** Returns the time of the latest transition; null if that was muted. */
export function lastNotifiedAt(alert: AlertRecord): number | null {
  const latest = alert.transitions.findLast((entry) => SENT.includes(entry.reason));
  return latest === undefined || isMuted(latest) ? null : latest.at;
}

/** Returns the minute up to which the alert's messages name the attackers of its incident; 0 if none does. */
export function namedThrough(alert: AlertRecord): number {
  const named = sinceResolve(alert).filter((entry) => !isMuted(entry));
  return Math.max(0, ...named.map((entry) => entry.namedThrough ?? 0));
}

/** Returns the minute up to which a person knew the attackers when resolving the alert; null if nobody did. */
export function resolvedThrough({ transitions }: AlertRecord): number | null {
  const last = transitions.findLast(({ reason }) => !isPersons(reason));
  return last !== undefined && endsAlert(last) && last.by !== undefined ? (last.namedThrough ?? null) : null;
}

/** Returns how many notifications were made since the alert last began to fire. */
export function countNotifications(alert: AlertRecord): number {
  return sinceResolve(alert).filter((entry) => NOTICED.includes(entry.reason) && !isMuted(entry)).length;
}

/** Returns the channel's latest notification, also one before a resolve; null if there is none. An update in place does not count. */
export function lastNotification(
  alert: AlertRecord,
  channel: string,
): { readonly atMs: number; readonly severity: Severity } | null {
  const entry = alert.transitions.findLast((one) => isNotified(one, channel));
  return entry === undefined ? null : { atMs: entry.at, severity: entry.severity ?? "info" };
}

function isNotified({ reason, channels, quiet }: Transition, channel: string): boolean {
  return NOTICED.includes(reason) && channels.includes(channel) && !quiet.includes(channel);
}

/**
 * Returns the time of the `again`, `worse` or `join` that the channel still has to be notified of; null if there is none, or if a person
 * has acknowledged the alert since.
 */
export function pendingWorseSince(alert: AlertRecord, channel: string): number | null {
  const isSettled = (entry: Transition) => entry.reason === "acknowledged" || isNotified(entry, channel);
  const entry = sinceResolve(alert).findLast(
    (one) =>
      isSettled(one) ||
      ((one.reason === "worse" || one.reason === "join" || one.reason === "again") &&
        (isMuted(one) || one.held.includes(channel) || one.waiting.includes(channel))),
  );
  return entry === undefined || isSettled(entry) ? null : entry.at;
}

/** Returns the reason, apart from a silence, why no channel is notified of an open alert; null if a channel was sent a message. */
export function findMute(alert: Pick<AlertRecord, "transitions">): MuteKind | null {
  const entries = sinceResolve(alert);
  if (entries.some(({ channels }) => channels.length > 0)) return null;
  return entries.findLast(({ reason }) => SENT.includes(reason))?.mutedBy ?? null;
}

/** The history since the alert last began to fire. */
function sinceResolve({ transitions }: Pick<AlertRecord, "transitions">): readonly Transition[] {
  return transitions.slice(transitions.findLastIndex(endsAlert) + 1);
}

/**
 * Returns when a channel was last sent a message since the alert began to fire. `isPending`: a later transition was
 * muted, or fell into the channel's quiet hours, at that time. A channel that is new to the alert has the time of the
 * others.
 */
export function lastSent(
  alert: AlertRecord,
  channel: string,
): { readonly atMs: number; readonly isPending: boolean } {
  const entries = sinceResolve(alert).filter(({ reason }) => SENT.includes(reason));
  for (const entry of entries.toReversed()) {
    if (entry.channels.includes(channel)) return { atMs: entry.at, isPending: false };
    if (isMuted(entry) || entry.held.includes(channel)) return { atMs: entry.at, isPending: true };
  }
  const atMs = lastNotifiedAt(alert);
  return { atMs: atMs ?? alert.firedAtMs, isPending: atMs === null };
}

/** Returns whether a recommendation was sent, to any channel or to the one given. */
export function hasSentAdvice(alert: AlertRecord, channel?: string): boolean {
  return alert.transitions.some(
    (entry) =>
      entry.hasAdvice && !isMuted(entry) && (channel === undefined || entry.channels.includes(channel)),
  );
}

/**
 * Returns the class and title of the verdict on the spike that a channel, or any if none is given, was last sent since the alert began to
 * fire; null if it was sent none. `verdicts` are those of the spike.
 */
export function sentVerdict(
  alert: AlertRecord,
  { spikeId, verdicts }: { readonly spikeId: number | null; readonly verdicts: readonly StoredVerdict[] },
  channel?: string,
): Pick<StoredVerdict, "said" | "title"> | null {
  const isSent = ({ channels }: Transition) =>
    channel === undefined ? channels.length > 0 : channels.includes(channel);
  const sent = sinceResolve(alert).findLast((one) => isSent(one) && one.verdict !== undefined)?.verdict;
  if (sent === undefined || sent.spikeId !== spikeId) return null;
  const { said, title = "" } = sent;
  return said === undefined ? (verdicts.find(({ look }) => look === sent.look) ?? null) : { said, title };
}

/** Returns the channels that were sent a message since the alert last began to fire. */
export function notifiedChannels(alert: AlertRecord): ReadonlySet<string> {
  return new Set(sinceResolve(alert).flatMap((entry) => entry.channels));
}

/**
 * Returns the title of the verdict on the spike that channels were sent last, if the latest verdict is of another class; undefined
 * if they were sent none, or the class is the same.
 */
export function findWas(
  alert: AlertRecord,
  spikeId: number,
  verdicts: readonly StoredVerdict[],
): string | undefined {
  const sent = sentVerdict(alert, { spikeId, verdicts });
  const now = verdicts.at(-1);
  return sent !== null && now !== undefined && turns(sent, now) ? sent.title : undefined;
}

/** The outbox rows of one message, each with the message as its channel should read it. `before` is the alert before the transition. */
export function toNotifications(
  message: AlertMessage,
  { notified, updated = [] }: Partial<Recipients>,
  before: AlertRecord | null,
) {
  const { alertId, transition } = message;
  const assignedTo = (before && assigneeOf(before)) ?? undefined;
  return [...(notified ?? []), ...updated].map((channel) => {
    const content = addressMessage({ assignedTo, ...message }, channel, before, updated.includes(channel));
    return {
      alertId,
      transition,
      reason: content.reason,
      channel,
      dedupeKey: notificationKeyOf(content, channel),
      content,
    };
  });
}

/**
 * Rewords the message for a channel that was never sent the alert: the alert fires, not got worse or still fires. For a
 * channel whose last notification was the resolve, the alert fires again.
 */
function addressMessage(
  message: AlertMessage,
  channel: string,
  before: AlertRecord | null,
  isUpdate: boolean,
): AlertMessage {
  if (!GOES_ON.some((reason) => reason === message.reason)) return message;
  const sent = before?.transitions.filter((entry) => entry.channels.includes(channel)) ?? [];
  // An update in place notified no one, so an earlier notification counts.
  const last = sent.findLast((entry) => !entry.quiet.includes(channel)) ?? sent.at(-1);
  if (last === undefined) return { ...message, reason: "first" };
  return {
    ...message,
    ...(ENDINGS.some((reason) => reason === last.reason) ? { isAgain: true } : {}),
    ...(isUpdate ? { isQuiet: true } : {}),
  };
}
