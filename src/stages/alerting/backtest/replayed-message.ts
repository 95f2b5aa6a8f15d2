import type { NotifyReason, Severity, SourceKind } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";

/** One message that would have been sent. */
export interface ReplayedMessage {
  /** The end of the minute with which it is sent, in minutes since the epoch. */
  readonly at: number;
  /** The number of the alert in its zone. */
  readonly incident: number;
  readonly reason: NotifyReason | "late";
  readonly severity: Severity;
  readonly subject: "incident" | "rule" | "flip";
  /** Active attackers, the newest first. */
  readonly attackers: readonly { readonly kind: SourceKind; readonly key: string }[];
  /** The rule and those that are part of its alert, or the members of the incident. */
  readonly rules: readonly string[];
  /** The latest one of the alert; left out if the alert is not judged. */
  readonly verdict?: StoredVerdict;
}
