import type { AdviceRow } from "../advice/advice-row.ts";
import { type AdviceStanding, adviceStanding } from "../advice/advice-standing.ts";
import type { AlertMessage } from "../channel/alert-message.ts";
import type { AlertRecord, NotifyReason } from "./alert-record.ts";
import type { AlertSpike } from "./alert-spike.ts";
import { notifyReason } from "./notify-reason.ts";
import { findSilence, type Silence } from "./silence.ts";

/** What the decisions of one moment rest on, the same for every alert. */
export interface Scene {
  readonly nowMs: number;
  /** Names of the configured channels. */
  readonly channels: readonly string[];
  readonly asks: readonly AdviceRow[];
  readonly silences: readonly Silence[];
}

export interface Assessment {
  readonly reason: NotifyReason | "none";
  readonly standing: AdviceStanding;
  readonly silence: Silence | null;
}

/** What is to be said about one spike now; `alert` is the newest of its fingerprint. */
export function assessAlert(spike: AlertSpike, alert: AlertRecord | null, scene: Scene): Assessment {
  const { asks, silences, nowMs } = scene;
  const standing = adviceStanding(spike, asks, nowMs);
  const silence = findSilence(silences, spike, nowMs);
  const hasAdvice = standing.state === "present";
  const isSilenced = silence !== null;
  const reason = notifyReason({ alert, spike, hasAdvice, isSilenced, nowMs });
  return { reason, standing, silence };
}

/**
 * Whether an unresolved alert's description lacks what is known by now, though nobody needs to be told: that no advice
 * will come, or that another spike has taken over within its hold.
 */
export function isOutdated(
  alert: Pick<AlertRecord, "state" | "spikeId">,
  message: AlertMessage | undefined,
  spike: AlertSpike,
  standing: AdviceStanding,
): boolean {
  if (alert.state === "resolved") return false;
  return (
    alert.spikeId !== spike.id ||
    message?.advice.state !== standing.state ||
    message.advice.reason !== standing.reason
  );
}
