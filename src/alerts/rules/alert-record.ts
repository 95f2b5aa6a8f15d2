/** An alert as it is stored: its transitions and details. */
import { z } from "zod";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import {
  ALERT_STATES,
  type AlertState,
  MUTES,
  type NotifyReason,
  SEVERITIES,
  type Severity,
} from "#model/kinds.ts";
import { storedVerdict } from "#model/verdict.ts";
import { isEnding } from "#model/words.ts";

/** One entry of an alert's history. A person's act has no channels. */
const Transition = z.object({
  transition: z.int().min(1),
  /** Epoch milliseconds. */
  at: z.int(),
  /** A notify reason, or a person's act. */
  reason: z.string(),
  state: z.enum(ALERT_STATES),
  severity: z.enum(SEVERITIES).nullish().default(null),
  /** The silence that muted the transition. */
  silencedBy: z.int().nullish().default(null),
  /** The mute that is not a silence. */
  mutedBy: z.enum(MUTES).nullish().default(null),
  /** The channels that were sent the transition: notified, or updated in place. */
  channels: z.array(z.string()).default([]),
  /** The channels that are notified after their quiet hours. */
  held: z.array(z.string()).default([]),
  /** Those of `channels` that were updated in place. */
  quiet: z.array(z.string()).default([]),
  /** The channels that are notified after the group interval; those of `quiet` are among them. */
  waiting: z.array(z.string()).default([]),
  /** The message names what was there up to this minute (since the epoch): attackers of an incident, or changed rules. */
  namedThrough: z.int().nullish(),
  /** Whether the message contained a recommendation. */
  hasAdvice: z.boolean().default(false),
  /** The verdict in the message, with its spike and time (`look`); left out if the message had none. */
  verdict: storedVerdict
    .pick({ look: true })
    .extend({
      spikeId: z.int(),
      // Left out by earlier versions.
      ...storedVerdict.pick({ said: true, title: true }).partial().shape,
    })
    .optional(),
  /** The person to whom the alert is assigned; empty if the assignment was removed. Hostile text. */
  to: z.string().optional(),
  /** A person's name and note. Hostile text. */
  by: z.string().optional(),
  note: z.string().optional(),
});
export const Transitions = z.array(Transition);
export type Transition = z.infer<typeof Transition>;

/** An alert, as the lifecycle reads it. Times are epoch ms. */
export interface AlertRecord {
  readonly state: AlertState;
  /** Number of the latest transition, from 1. */
  readonly transition: number;
  /** When the first spike of the episode opened. */
  readonly firedAtMs: number;
  readonly resolvedAtMs: number | null;
  /** The newest spike of the alert; null if that was deleted. */
  readonly spikeId: number | null;
  readonly transitions: readonly Transition[];
}

/** An alert as stored, its history as JSON. */
export interface StoredAlert {
  readonly state: AlertRecord["state"];
  readonly transition: number;
  readonly firedAt: Date;
  readonly resolvedAt: Date | null;
  readonly spikeId: number | null;
  readonly transitions: unknown;
}

/** @throws {ZodError} if the history cannot be read: a guess could notify twice or never. */
export function toAlertRecord(stored: StoredAlert): AlertRecord {
  const { state, transition, spikeId, firedAt, resolvedAt, transitions } = stored;
  return {
    state,
    transition,
    spikeId,
    firedAtMs: firedAt.getTime(),
    resolvedAtMs: resolvedAt?.getTime() ?? null,
    transitions: Transitions.parse(transitions),
  };
}

/** Returns whether an alert is of the spike, or goes on: then the spike has an alert of its own. */
export function holdsAlert(alert: AlertRecord | null, { id }: Pick<Occurrence, "id">): boolean {
  return alert !== null && (alert.state !== "resolved" || (alert.spikeId ?? 0) >= (id ?? 0));
}

/** The reasons why a transition is stored but sent to no channel. */
export type Mute = Pick<Transition, "silencedBy" | "mutedBy">;

export function isMuted({ silencedBy, mutedBy }: Mute): boolean {
  return silencedBy !== null || mutedBy !== null;
}

/** Channels that get a transition. No channel is in two of the lists. */
export interface Recipients {
  /** Sent as a new message, or under a key that the receiver knows. */
  readonly notified: readonly string[];
  /** Their earlier message is changed; they are notified later. */
  readonly updated: readonly string[];
  /** Sent nothing now; they are notified later. */
  readonly waiting: readonly string[];
}
export const NOBODY: Recipients = { notified: [], updated: [], waiting: [] };

/** A spike of a rule, or an incident. Times are epoch ms. */
export interface Occurrence {
  /** Null if no spike is left. */
  readonly id: number | null;
  readonly severity: Severity;
  readonly openedAtMs: number;
  readonly closedAtMs: number | null;
  /** Open, but its latest count is an everyday one again. */
  readonly isCalm: boolean;
  /** Closed, and it goes on: what rose is usual by now. */
  readonly isSettled?: boolean;
}

interface TransitionFacts {
  readonly reason: NotifyReason;
  readonly occurrence: Pick<Occurrence, "id" | "severity" | "openedAtMs">;
  readonly recipients: Recipients;
  readonly nowMs: number;
  readonly mute?: Mute;
  /** Channels in their quiet hours. */
  readonly held?: readonly string[];
  readonly hasAdvice?: boolean;
  readonly verdict?: Transition["verdict"];
  /** Time at which the alert last grew, in minutes since the epoch. */
  readonly newest?: number | null | undefined;
}

/** Returns the alert after a transition. `first` begins a new alert; a reopened alert keeps its key. */
export function nextAlert(alert: AlertRecord | null, facts: TransitionFacts): AlertRecord {
  const {
    reason,
    occurrence,
    recipients,
    nowMs,
    mute,
    held = [],
    hasAdvice = false,
    verdict,
    newest,
  } = facts;
  const { notified, updated, waiting } = recipients;
  const before = reason === "first" ? null : alert;
  const state = stateAfter(before, reason);
  const isEnd = state === "resolved";
  const entry: Transition = {
    transition: (before?.transition ?? 0) + 1,
    at: nowMs,
    reason,
    state,
    severity: occurrence.severity,
    silencedBy: isEnd ? null : (mute?.silencedBy ?? null),
    mutedBy: isEnd ? null : (mute?.mutedBy ?? null),
    channels: [...notified, ...updated],
    held: [...held],
    quiet: [...updated],
    waiting: [...waiting, ...updated],
    hasAdvice,
    ...(verdict !== undefined && { verdict }),
    ...(newest == null ? {} : { namedThrough: newest }),
  };
  return {
    state,
    transition: entry.transition,
    firedAtMs: before?.firedAtMs ?? occurrence.openedAtMs,
    resolvedAtMs: state === "resolved" ? nowMs : null,
    spikeId: occurrence.id,
    transitions: [...(before?.transitions ?? []), entry],
  };
}

/** Returns the alert as resolved in every transition, for a message that must page nobody. */
export function toResolved(alert: AlertRecord, resolvedAtMs: number | null): AlertRecord {
  const state = "resolved" as const;
  const transitions = alert.transitions.map((one) => ({ ...one, state }));
  return { ...alert, state, resolvedAtMs, transitions };
}

/** An acknowledged alert stays acknowledged when it gets worse. A reopened alert and a second wave fire. */
function stateAfter(before: AlertRecord | null, reason: NotifyReason): AlertRecord["state"] {
  if (isEnding(reason)) return "resolved";
  return before === null || before.state === "resolved" || reason === "again" ? "firing" : before.state;
}

/** The column `details` of an alert. `message` is the message of the latest transition. */
const AlertDetails = z.object({ message: alertMessage.optional() });

/** Returns null as the message if the alert has none, or if it cannot be read. */
export function parseDetails(details: unknown): { readonly message: AlertMessage | null } {
  const { data } = AlertDetails.safeParse(details);
  return { message: data?.message ?? null };
}
