import type { AlertRecord } from "../model/alert-record.ts";
import { type AlertSpike, isCalm } from "./alert-spike.ts";
import { type Assessment, assessAlert, type Scene } from "./assess-alert.ts";
import { pickChannels } from "./pick-channels.ts";
import type { Ringing } from "./plan-ringing.ts";

export interface AlertDecision extends Assessment {
  /** Who is notified of the transition; of `none`, nobody. */
  readonly told: Ringing;
}

const NOBODY: Ringing = { channels: [], quiet: [], waiting: [] };

/**
 * Decides the next transition of one alert and who is notified of it. `config routes test` explains what this function
 * returns, so that its answer cannot differ from the service's.
 */
export function decideAlert(
  spike: AlertSpike,
  before: AlertRecord | null,
  scene: Scene,
  isSpokenFor: (groupKey: string | null) => boolean,
): AlertDecision {
  const assessment = assessAlert(spike, before, scene, isSpokenFor);
  const { reason, silence, mutedBy, listeners, due } = assessment;
  if (reason === "none") return { ...assessment, told: NOBODY };
  const isSilenced = silence !== null || mutedBy !== null;
  const { nowMs, routing } = scene;
  const occurrence = { ...spike, isCalm: isCalm(spike) };
  const { channels: configured } = routing;
  const choice = { reason, alert: before, spike: occurrence, listeners, configured, due, isSilenced, nowMs };
  return { ...assessment, told: pickChannels(choice) };
}
