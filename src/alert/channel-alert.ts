import { type AlertMessage, alertMessage } from "../channel/alert-message.ts";
import type { AlertRecord } from "./alert-record.ts";
import { episodeKeyOf } from "./dedupe-key.ts";
import { digest } from "./fingerprint.ts";

/** The alert that a channel does not deliver; its name is in no other's. */
export function channelFingerprint(channel: string): string {
  return digest(["self", "channel", channel]);
}

/** What the other channels are told of one that fails. */
export interface ChannelTrouble {
  readonly waiting: number;
  readonly givenUp: number;
  readonly lastError: string;
}

export function buildChannelMessage(facts: {
  readonly alertId: number;
  readonly channel: string;
  /** After the transition. */
  readonly alert: AlertRecord;
  readonly reason: "first" | "resolved";
  /** Null once it delivers again. */
  readonly trouble: ChannelTrouble | null;
}): AlertMessage {
  const { alertId, channel, alert, reason, trouble } = facts;
  const fingerprint = channelFingerprint(channel);
  return alertMessage.parse({
    alertId,
    fingerprint,
    dedupeKey: episodeKeyOf({ fingerprint, firedAtMs: alert.firedAtMs }),
    transition: alert.transition,
    reason,
    state: alert.state,
    severity: "error",
    kind: "self",
    zoneId: null,
    ruleId: null,
    ruleTitle: null,
    headline: describeTrouble(channel, trouble),
    startedAt: alert.firedAtMs,
    endedAt: alert.resolvedAtMs,
    windowMinutes: 1,
    count: 0,
    usual: 0,
    threshold: 0,
    score: 0,
    peak: 0,
    times: null,
    actions: { blocked: 0, logged: 0, challenged: 0, other: 0 },
    top: { ips: [], asns: [], countries: [], paths: [], userAgents: [], ja4s: [] },
    sparkline: [],
    advice: { state: "unavailable", text: null, reason: null },
    links: [],
    howToSilence: null,
  });
}

function describeTrouble(channel: string, trouble: ChannelTrouble | null): string {
  if (trouble === null) return `Channel ${channel} delivers again`;
  const { waiting, givenUp, lastError } = trouble;
  return `Channel ${channel} does not deliver (waiting: ${waiting}, given up: ${givenUp}): ${lastError}`;
}
