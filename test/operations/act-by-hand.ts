import { ackAlert, resolveAlert as resolveOperation } from "#alerts/operations/act-on-alerts.ts";
import type { Database } from "#db/client.ts";
import { performOn } from "./perform-on.ts";

interface Act {
  readonly alertId: number;
  readonly by: string;
  readonly note: string | null;
  readonly atMs: number;
}

/** Acknowledges an alert as a person does. */
export function acknowledgeByHand(database: Database, { alertId, by, note, atMs }: Act) {
  return performOn(database, ackAlert, { id: alertId, note: note ?? undefined }, { by, now: atMs });
}

/** Resolves an alert as a person does. */
export function resolveAlert(database: Database, { alertId, by, note, atMs }: Act) {
  return performOn(database, resolveOperation, { id: alertId, note: note ?? undefined }, { by, now: atMs });
}
