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

/** The database is down, does not answer or has no disk space left. */
export interface DatabaseTrouble {
  /** Epoch ms. */
  readonly sinceMs: number;
  /** The problem and its consequence, in one line. */
  readonly headline: string;
}

/**
 * Returns the message about a database that cannot store the alert itself: that the database failed, or with
 * `resolvedAtMs` that it works again. The alert has no row, so it has no number.
 */
export function buildDatabaseMessage(trouble: DatabaseTrouble, resolvedAtMs: number | null): AlertMessage {
  const isOver = resolvedAtMs !== null;
  return buildSelfMessage({
    alertId: 0,
    fingerprint: digest(["self", "database"]),
    reason: isOver ? "resolved" : "first",
    severity: "critical",
    zoneId: null,
    headline: isOver ? "The database works again" : trouble.headline,
    alert: {
      state: isOver ? "resolved" : "firing",
      transition: isOver ? 2 : 1,
      firedAtMs: trouble.sinceMs,
      resolvedAtMs,
      spikeId: null,
      transitions: [],
    },
  });
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
