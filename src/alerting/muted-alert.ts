import type { AlertMessage } from "../model/alert-message.ts";
import type { AlertRecord } from "../model/alert-record.ts";
import { fingerprintOf } from "../model/fingerprint.ts";
import type { Candidate } from "./group-candidates.ts";
import { buildMessage } from "./message/build-message.ts";
import { nextAlert } from "./next-alert.ts";
import { notifyReason } from "./notify-reason.ts";
import { NOTHING_DUE } from "./plan-ringing.ts";

/** A group's member as an alert of its own. */
export interface MutedAlert {
  readonly alert: AlertRecord;
  readonly fingerprint: string;
  /** Its alert's id is yet to be put in. */
  readonly message: AlertMessage;
}

/** The member's own alert, there to be found and told to nobody; null where it has one to go on with. */
export function toMutedAlert(candidate: Candidate, nowMs: number): MutedAlert | null {
  const { spike, alert: before, assessment } = candidate;
  const facts = { alert: before, spike, hasAdvice: false, isSilenced: true, nowMs, due: NOTHING_DUE };
  if (notifyReason(facts) !== "first") return null;
  const muted = { channels: [], silencedBy: null, mutedBy: "group" as const, hasAdvice: false };
  const alert = nextAlert(null, { reason: "first", spike, ...muted, nowMs });
  const fingerprint = fingerprintOf(spike);
  const { state, reason } = assessment.standing;
  const advice = { state, text: null, reason };
  const message = buildMessage({ alertId: 0, fingerprint, alert, reason: "first", spike, advice });
  return { alert, fingerprint, message };
}
