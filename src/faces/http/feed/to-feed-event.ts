import type { FeedRow } from "#db/alerting/feed-transitions.ts";
import { Transitions } from "#stages/alerting/alert-record.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import { maskNullable } from "#stages/archive/mask/mask-text.ts";

/** One transition as the stream shows it. Its texts are hostile. */
export interface FeedEvent {
  readonly sequence: number;
  readonly alertId: number;
  readonly transition: number;
  /** ISO 8601. Null, like state and severity, if the alert's history cannot be read. */
  readonly at: string | null;
  readonly reason: string;
  readonly state: string | null;
  readonly severity: string | null;
  readonly kind: string;
  readonly zoneId: number | null;
  readonly ruleId: string | null;
  readonly ruleTitle: string | null;
  readonly firedAt: string;
  readonly fingerprint: string;
  readonly headline: string | null;
  readonly by: string | null;
  readonly note: string | null;
  /** The silence that kept the transition from the channels. */
  readonly silencedBy: number | null;
}

/** Returns a transition for the stream. `isMasked` masks the addresses in its texts. */
export function toFeedEvent(row: FeedRow, isMasked: boolean): FeedEvent {
  const { sequence, alertId, transition, kind, zoneId, ruleId, fingerprint, headline } = row;
  const entry = Transitions.safeParse([row.entry]).data?.[0];
  const note = entry?.note ?? null;
  const by = entry?.by ?? null;
  return {
    sequence,
    alertId,
    transition,
    at: entry === undefined ? null : new Date(entry.at).toISOString(),
    reason: entry?.reason ?? "unknown",
    state: entry?.state ?? null,
    severity: entry?.severity ?? null,
    kind,
    zoneId,
    ruleId,
    ruleTitle: ruleTitle(ruleId),
    firedAt: row.firedAt.toISOString(),
    fingerprint,
    headline: isMasked ? maskNullable(headline) : headline,
    by: isMasked ? maskNullable(by) : by,
    note: isMasked ? maskNullable(note) : note,
    silencedBy: entry?.silencedBy ?? null,
  };
}
