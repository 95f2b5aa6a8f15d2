import type { AlertRow } from "#db/alerting/alerts.ts";
import { toAlertRecord } from "#stages/alerting/alert-record.ts";
import { type SignedSilence, wouldMute } from "#stages/alerting/silence.ts";
import { toSilencedAlert } from "#stages/alerting/to-silenced-alert.ts";

/** A time in which a silence was in force for an alert. Epoch ms. */
export interface Silenced {
  readonly silence: SignedSilence;
  readonly fromMs: number;
  /** Null while it lasts. */
  readonly toMs: number | null;
}

/**
 * Returns when silences muted an open alert: those that match it as it is now, and those that muted a transition of it.
 * A silence mutes nothing before it was made, although it may begin earlier.
 */
export function listSilenced(row: AlertRow, silences: readonly SignedSilence[], nowMs: number): Silenced[] {
  const alert = toSilencedAlert(row);
  const [firedAtMs, resolvedAtMs] = [row.firedAt.getTime(), row.resolvedAt?.getTime() ?? null];
  const known = new Set(toAlertRecord(row).transitions.map(({ silencedBy }) => silencedBy));
  const openUntilMs = resolvedAtMs ?? nowMs;
  return silences
    .filter(({ id, matchers }) => known.has(id) || wouldMute(matchers, alert))
    .map((silence) => {
      const { startsAtMs, expiresAtMs, createdAtMs } = silence;
      const toMs = Math.min(expiresAtMs, openUntilMs);
      const isOver = expiresAtMs <= nowMs || resolvedAtMs !== null;
      return {
        silence,
        fromMs: Math.max(startsAtMs, createdAtMs <= nowMs ? createdAtMs : startsAtMs, firedAtMs),
        toMs: isOver ? toMs : null,
      };
    })
    .filter(({ fromMs, toMs }) => fromMs < (toMs ?? nowMs + 1))
    .sort((one, other) => one.fromMs - other.fromMs);
}
