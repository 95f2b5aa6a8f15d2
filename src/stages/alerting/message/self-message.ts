import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import { episodeKeyOf } from "#model/fingerprint.ts";
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
