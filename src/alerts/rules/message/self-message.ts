/** Messages about Longwatch itself, about a channel, and to test one. */
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import { digest, episodeKeyOf } from "#model/fingerprint.ts";
import type { NotifyReason, Severity } from "#model/kinds.ts";
import { NO_EVENTS } from "#model/weekly-digest.ts";
import type { ZoneFacts } from "#model/zones.ts";
import type { AlertRecord } from "../alert-record.ts";

/** Content of a message about Longwatch itself. */
export interface SelfMessageFacts {
  readonly alertId: number;
  readonly fingerprint: string;
  /** After the transition. */
  readonly alert: AlertRecord;
  readonly reason: Exclude<NotifyReason, "advice">;
  readonly severity: Severity;
  /** Null where no single zone is concerned. */
  readonly zoneId: number | null;
  readonly zone?: ZoneFacts;
  readonly headline: string;
}

/** Builds the message of one transition of an alert that has no events. */
export function buildSelfMessage(facts: SelfMessageFacts): AlertMessage {
  const { alert, fingerprint, zone, ...given } = facts;
  return alertMessage.parse({
    ...given,
    ...zone,
    fingerprint,
    dedupeKey: episodeKeyOf({ fingerprint, firedAtMs: alert.firedAtMs }),
    transition: alert.transition,
    state: alert.state,
    kind: "self",
    ruleId: null,
    ruleTitle: null,
    startedAt: alert.firedAtMs,
    endedAt: alert.resolvedAtMs,
    ...NO_EVENTS,
  });
}

/**
 * Returns the fingerprint of the alert about a channel that does not deliver. No other alert's fingerprint contains its
 * name.
 */
export function channelFingerprint(channel: string): string {
  return digest(["self", "channel", channel]);
}

/** Content of the alert about a channel that fails. */
interface ChannelTrouble {
  readonly waiting: number;
  readonly givenUp: number;
  readonly lastError: string;
}

/** `trouble` is null once the channel delivers again, or is not configured any more. */
export function describeTrouble(
  channel: string,
  trouble: ChannelTrouble | null,
  isConfigured: boolean,
): string {
  if (!isConfigured) return `Channel ${channel} is not configured any more`;
  if (trouble === null) return `Channel ${channel} delivers again`;
  const { waiting, givenUp, lastError } = trouble;
  return `Channel ${channel} does not deliver (pending: ${waiting}, given up: ${givenUp}): ${lastError}`;
}

/**
 * Returns the message that tests a channel: the first transition of an alert that does not exist, or its resolve, for
 * receivers that would otherwise keep it open. Each `nowMs` is another episode.
 */
export function buildTestMessage(channel: string, nowMs: number, reason: "first" | "resolved"): AlertMessage {
  const isOver = reason === "resolved";
  const transition = isOver ? 2 : 1;
  return buildSelfMessage({
    alertId: 0,
    fingerprint: digest(["self", "channel-test", channel]),
    reason,
    severity: "info",
    zoneId: null,
    headline: isOver
      ? `TEST of channel ${channel} ended. Nothing happened, and you need not do anything`
      : `TEST of channel ${channel}. If you can read this, the channel works. Nothing happened, and you need not do anything`,
    alert: {
      state: isOver ? "resolved" : "firing",
      transition,
      firedAtMs: nowMs,
      resolvedAtMs: isOver ? nowMs : null,
      spikeId: null,
      transitions: [],
    },
  });
}
