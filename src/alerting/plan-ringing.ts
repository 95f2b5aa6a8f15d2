import {
  type AlertRecord,
  hasToldAdvice,
  lastHeard,
  lastRang,
  owedRiseSince,
  toldChannels,
} from "../model/alert-record.ts";
import { isGraver, type Severity } from "../model/severity.ts";
import type { Occurrence } from "./occurrence.ts";
import type { Manner } from "./routing/manner.ts";

/** Where no route says otherwise. */
const REPEAT_INTERVAL_MS = 4 * 60 * 60_000;
const RING_INTERVAL_MS = 5 * 60_000;
/** What has ended is closed within half of this; what is still open then goes on, if less than it was. */
const CALM_MS = 60 * 60_000;

/** Who may hear of an alert now, by its routes. */
export interface Listeners {
  readonly channels: readonly string[];
  /** By channel; four hours without. */
  readonly repeatIntervalMs?: ReadonlyMap<string, number>;
  /** Between two messages of one alert that ring on a channel: the group's interval. Five minutes without. */
  readonly ringIntervalMs?: number;
  /** Everybody rings without. */
  readonly mannerOf?: ((channel: string) => Manner) | undefined;
}

/** Which of the listeners are to be told again although nothing is new, by what they are to be told. */
export interface Due {
  readonly rise: readonly string[];
  readonly repeat: readonly string[];
  readonly advice: readonly string[];
}
export const NOTHING_DUE: Due = { rise: [], repeat: [], advice: [] };

/**
 * What every channel is owed: a rise that it has waited for, the reminder that an alert still fires, the advice. While
 * nothing happens nobody is rung: the end is near, and it is what there will be to say.
 */
export function findDue(
  alert: AlertRecord,
  listeners: Listeners,
  { severity, isCalm = false }: Pick<Occurrence, "severity" | "isCalm">,
  nowMs: number,
): Due {
  const channels = [...new Set(listeners.channels)];
  const told = toldChannels(alert);
  const graceMs = isCalm ? CALM_MS : 0;
  const isRiseDue = (channel: string) => {
    const since = owedRiseSince(alert, channel);
    if (since === null || nowMs - since < graceMs) return false;
    return mayRing(alert, channel, listeners, severity, nowMs);
  };
  return {
    rise: channels.filter(isRiseDue),
    repeat: channels.filter((channel) => isRepeatDue(alert, channel, listeners, nowMs - graceMs, nowMs)),
    advice: channels.filter((channel) => told.has(channel) && !hasToldAdvice(alert, channel)),
  };
}

/** Who is told of a rise at once, who of them without a sound, and who is rung for it when that may be. */
export interface Ringing {
  readonly channels: readonly string[];
  readonly quiet: readonly string[];
  readonly waiting: readonly string[];
}

/**
 * One attack does not ring twice in a row: who was rung a moment ago reads of a rise, or hears of it later. Nor does one of
 * which nothing happens any more, as where other rules of the zone have made it graver.
 */
export function planRinging(
  alert: AlertRecord,
  listeners: Listeners,
  { severity, isCalm = false }: Pick<Occurrence, "severity" | "isCalm">,
  nowMs: number,
): Ringing {
  const routed = [...new Set(listeners.channels)];
  const isHeldBack = isCalm && alert.state !== "resolved";
  const waiting = routed.filter(
    (channel) => isHeldBack || !mayRing(alert, channel, listeners, severity, nowMs),
  );
  const hasMessage = (channel: string) => lastRang(alert, channel) !== null;
  const quiet = waiting.filter((channel) => listeners.mannerOf?.(channel) === "edits" && hasMessage(channel));
  const channels = routed.filter((channel) => !waiting.includes(channel) || quiet.includes(channel));
  return { channels, quiet, waiting };
}

function mayRing(
  alert: AlertRecord,
  channel: string,
  { ringIntervalMs = RING_INTERVAL_MS, mannerOf }: Listeners,
  severity: Severity,
  nowMs: number,
): boolean {
  const rang = lastRang(alert, channel);
  if (rang === null || nowMs - rang.atMs >= ringIntervalMs) return true;
  // Of a key that was closed there it would be a new page.
  if (mannerOf?.(channel) === "keyed" && toldChannels(alert).has(channel)) return true;
  // Receivers wake nobody for an info or a warning: what has become critical since is the first that does.
  return severity === "critical" && !isGraver(rang.severity, "warning");
}

/** `dueByMs`: what would have been due by then. */
function isRepeatDue(
  alert: AlertRecord,
  channel: string,
  { repeatIntervalMs, ringIntervalMs = RING_INTERVAL_MS }: Listeners,
  dueByMs: number,
  nowMs: number,
): boolean {
  const { atMs, isOwed } = lastHeard(alert, channel);
  const intervalMs = repeatIntervalMs?.get(channel) ?? REPEAT_INTERVAL_MS;
  // Who is owed a message, as after a silence, may have been rung just before it began.
  const rangAtMs = lastRang(alert, channel)?.atMs ?? Number.NEGATIVE_INFINITY;
  const isRecent = nowMs - rangAtMs < Math.min(ringIntervalMs, intervalMs);
  return !isRecent && dueByMs - atMs >= (isOwed ? 0 : intervalMs);
}
