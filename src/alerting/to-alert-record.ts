import { type AlertRecord, Transitions } from "../model/alert-record.ts";

/** An alert as stored, its history as JSON. */
export interface StoredAlert {
  readonly state: AlertRecord["state"];
  readonly transition: number;
  readonly firedAt: Date;
  readonly resolvedAt: Date | null;
  readonly spikeId: number | null;
  readonly transitions: unknown;
}

/** @throws {ZodError} when the history is not one; guessing could page twice or never. */
export function toAlertRecord(stored: StoredAlert): AlertRecord {
  const { firedAt, resolvedAt, transitions, ...rest } = stored;
  return {
    state: rest.state,
    transition: rest.transition,
    spikeId: rest.spikeId,
    firedAtMs: firedAt.getTime(),
    resolvedAtMs: resolvedAt?.getTime() ?? null,
    transitions: Transitions.parse(transitions),
  };
}
