import type { AdviceRow } from "../model/advice-row.ts";
import type { AlertMessage } from "../model/alert-message.ts";
import { type AlertRecord, type NotifyReason, type Transition, toldChannels } from "../model/alert-record.ts";
import type { Subject } from "../model/subject.ts";
import { type AdviceStanding, adviceStanding } from "./advice/advice-standing.ts";
import { groupKeyOf } from "./alert-group.ts";
import { type AlertSpike, isCalm } from "./alert-spike.ts";
import { notifyReason } from "./notify-reason.ts";
import { type Due, findDue, type Listeners, NOTHING_DUE } from "./plan-ringing.ts";
import { findInhibition } from "./routing/find-inhibition.ts";
import type { Manner } from "./routing/manner.ts";
import { planTelling, type Telling } from "./routing/plan-telling.ts";
import type { Routing } from "./routing/routing.ts";
import { findSilence, type Silence } from "./silence.ts";

/** What the decisions of one moment rest on, the same for every alert. */
export interface Scene {
  readonly nowMs: number;
  readonly routing: Routing;
  readonly asks: readonly AdviceRow[];
  readonly silences: readonly Silence[];
  /** What spikes now. */
  readonly firing: readonly Subject[];
  /** What another message does on a channel; each rings without. */
  readonly mannerOf?: (channel: string) => Manner;
}

export interface Assessment {
  readonly reason: NotifyReason | "none";
  readonly standing: AdviceStanding;
  readonly silence: Silence | null;
  readonly mutedBy: Transition["mutedBy"];
  readonly telling: Telling;
  readonly listeners: Listeners;
  /** Of the listeners, those that are to hear again. */
  readonly due: Due;
  /** Names the group that may speak for it; null where every alert speaks for itself. */
  readonly groupKey: string | null;
}

/**
 * What is to be said about one spike now; `alert` is the newest of its fingerprint, `isSpokenFor` says whether a group
 * speaks for it, by the key of the one that may. The first word waits for companions; a group speaks for those that nobody has heard of.
 */
export function assessAlert(
  spike: AlertSpike,
  alert: AlertRecord | null,
  scene: Scene,
  isSpokenFor: (groupKey: string | null) => boolean,
): Assessment {
  const { asks, silences, nowMs, routing } = scene;
  const standing = adviceStanding(spike, asks, nowMs);
  const silence = findSilence(silences, spike, nowMs);
  const telling = planTelling(routing, spike, nowMs);
  const groupKey = groupKeyOf(telling, spike);
  const isUntold = alert === null || toldChannels(alert).size === 0;
  const isGrouped = isUntold && isSpokenFor(groupKey);
  const mutedBy = isInhibited(spike, scene) ? "inhibition" : isGrouped ? "group" : null;
  const hasAdvice = standing.state === "present";
  const isSilenced = silence !== null || mutedBy !== null;
  const listeners = toListeners(telling, scene);
  const occurrence = { ...spike, isCalm: isCalm(spike) };
  const due = alert === null ? NOTHING_DUE : findDue(alert, listeners, occurrence, nowMs);
  const said = notifyReason({ alert, spike: occurrence, hasAdvice, isSilenced, nowMs, due });
  const isWaiting =
    said === "first" &&
    !isSilenced &&
    spike.closedAtMs === null &&
    nowMs - spike.openedAtMs < telling.timing.groupWaitMs;
  const reason = isWaiting ? "none" : said;
  return { reason, standing, silence, mutedBy, telling, listeners, due, groupKey };
}

function toListeners({ channels, repeatIntervalMs, timing }: Telling, { mannerOf }: Scene): Listeners {
  return { channels, repeatIntervalMs, ringIntervalMs: timing.groupIntervalMs, mannerOf };
}

function isInhibited(spike: AlertSpike, { routing, firing }: Scene): boolean {
  return spike.closedAtMs === null && findInhibition(routing.inhibitions, spike, firing) !== null;
}

/**
 * Whether an unresolved alert's description lacks what is known by now, though nobody needs to be told: that no advice
 * will come, that another spike has taken over within its hold, or how much there is of it by now. Of what nobody was told
 * of, as of the thousands that a flood speaks for, the counts stay as they were.
 */
export function isOutdated(
  alert: AlertRecord,
  message: AlertMessage | undefined,
  spike: AlertSpike,
  standing: AdviceStanding,
): boolean {
  if (alert.state === "resolved") return false;
  const isCounted = message?.count === spike.windowCount && message.peak === spike.peak;
  return (
    alert.spikeId !== spike.id ||
    message?.advice.state !== standing.state ||
    message.advice.reason !== standing.reason ||
    (!isCounted && spike.closedAtMs === null && toldChannels(alert).size > 0)
  );
}
