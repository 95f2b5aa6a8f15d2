import { z } from "zod";
import { severities } from "./alert-message.ts";
import { isGraver, type Severity } from "./severity.ts";

/** One entry of an alert's history. Those of a person (an acknowledgement) carry no channels. */
const Transition = z.object({
  transition: z.int().min(1),
  /** Epoch milliseconds. */
  at: z.int(),
  /** A notify reason, or a person's act. */
  reason: z.string(),
  state: z.enum(["firing", "acknowledged", "resolved"]),
  severity: z.enum(severities).nullish().default(null),
  /** The silence that kept it from the channels. */
  silencedBy: z.int().nullish().default(null),
  /** What else did: a graver alert that inhibits it, or a group that speaks for it. */
  mutedBy: z.enum(["inhibition", "group"]).nullish().default(null),
  channels: z.array(z.string()).default([]),
  /** Those that are to hear after their quiet hours. */
  held: z.array(z.string()).default([]),
  /** Of `channels`, those whose message changed in place without a sound. */
  quiet: z.array(z.string()).default([]),
  /** Those that hear of it once they have not been rung for long enough. */
  waiting: z.array(z.string()).default([]),
  /** Whether its message carried a recommendation. */
  hasAdvice: z.boolean().default(false),
  /** Of a person's act: who, and what they wrote. Hostile text. */
  by: z.string().optional(),
  note: z.string().optional(),
});
export const Transitions = z.array(Transition);
export type Transition = z.infer<typeof Transition>;

export type NotifyReason = "first" | "worse" | "repeat" | "advice" | "resolved";
const NOTIFYING: readonly string[] = ["first", "worse", "repeat", "advice", "resolved"];
/** Those that somebody has to hear, where a channel can tell them apart. */
const RINGING: readonly string[] = ["first", "worse", "repeat"];

/** An alert as far as the lifecycle needs it. Fired is when its episode's first spike opened. */
export interface AlertRecord {
  readonly state: "firing" | "acknowledged" | "resolved";
  /** Number of the latest transition, from 1. */
  readonly transition: number;
  readonly firedAtMs: number;
  readonly resolvedAtMs: number | null;
  /** The newest spike it covers; null when that was deleted. */
  readonly spikeId: number | null;
  readonly transitions: readonly Transition[];
}

/** How often an alert that is not resolved has fired again after a resolve. */
export function countReopenings(alert: AlertRecord): number {
  return alert.transitions.filter((entry) => entry.reason === "resolved").length;
}

/** The gravest severity since the alert last began to fire; what `worse` is measured against. */
export function gravestSeverity(alert: AlertRecord): Severity {
  return sinceResolve(alert)
    .map((entry) => entry.severity ?? "info")
    .reduce((gravest, next) => (isGraver(next, gravest) ? next : gravest), "info");
}

/** When the channels heard of the latest transition; null when a silence has kept it from them. */
export function lastToldAt(alert: AlertRecord): number | null {
  const latest = alert.transitions.findLast((entry) => NOTIFYING.includes(entry.reason));
  return latest === undefined || isMuted(latest) ? null : latest.at;
}

/** What rang on a channel last; epoch ms. */
export interface Rang {
  readonly atMs: number;
  readonly severity: Severity;
}

/** Null where nothing of this alert has rung there, not even before a resolve. */
export function lastRang(alert: AlertRecord, channel: string): Rang | null {
  const entry = alert.transitions.findLast((one) => hasRung(one, channel));
  return entry === undefined ? null : { atMs: entry.at, severity: entry.severity ?? "info" };
}

function hasRung({ reason, channels, quiet }: Transition, channel: string): boolean {
  return RINGING.includes(reason) && channels.includes(channel) && !quiet.includes(channel);
}

/**
 * Since when the channel is to be rung because it got worse, or fired again; null where it is not, or where a person has
 * taken the alert on since.
 */
export function owedRiseSince(alert: AlertRecord, channel: string): number | null {
  const entry = sinceResolve(alert).findLast(
    (one) =>
      isSettled(one, channel) ||
      (one.reason === "worse" &&
        (isMuted(one) || one.held.includes(channel) || one.waiting.includes(channel))),
  );
  return entry === undefined || isSettled(entry, channel) ? null : entry.at;
}

function isSettled(entry: Transition, channel: string): boolean {
  return entry.reason === "acknowledged" || hasRung(entry, channel);
}

/** The history since the alert last began to fire. */
function sinceResolve({ transitions }: AlertRecord): readonly Transition[] {
  return transitions.slice(transitions.findLastIndex((entry) => entry.reason === "resolved") + 1);
}

function isMuted({ silencedBy, mutedBy }: Transition): boolean {
  return silencedBy !== null || mutedBy !== null;
}

/** When a channel last heard of an alert, or since when it is owed a message; epoch ms. */
export interface Heard {
  readonly atMs: number;
  readonly isOwed: boolean;
}

/**
 * Owed is what was muted or fell into the channel's quiet hours. A channel that was not there yet hears when the others
 * do.
 */
export function lastHeard(alert: AlertRecord, channel: string): Heard {
  const entries = sinceResolve(alert).filter(({ reason }) => NOTIFYING.includes(reason));
  for (const entry of entries.toReversed()) {
    if (entry.channels.includes(channel)) return { atMs: entry.at, isOwed: false };
    if (isMuted(entry) || entry.held.includes(channel)) return { atMs: entry.at, isOwed: true };
  }
  const toldAtMs = lastToldAt(alert);
  return { atMs: toldAtMs ?? alert.firedAtMs, isOwed: toldAtMs === null };
}

/** Whether a recommendation has been told; of a channel, whether there. */
export function hasToldAdvice(alert: AlertRecord, channel?: string): boolean {
  return alert.transitions.some(
    (entry) =>
      entry.hasAdvice && !isMuted(entry) && (channel === undefined || entry.channels.includes(channel)),
  );
}

/** Every channel that has a notification of this alert and no resolve after it. */
export function toldChannels(alert: AlertRecord): ReadonlySet<string> {
  return new Set(sinceResolve(alert).flatMap((entry) => entry.channels));
}
