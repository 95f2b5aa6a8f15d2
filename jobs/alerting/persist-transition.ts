import {
  type AlertRow,
  changeAlert,
  describeAlert,
  insertAlerts,
  insertNotifications,
} from "#db/alerting/alerts.ts";
import type { Queryable } from "#db/client.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { NotifyReason } from "#model/kinds.ts";
import type { AlertRecord, Recipients } from "#stages/alerting/alert-record.ts";
import { toNotifications } from "#stages/alerting/to-notifications.ts";

export interface NewTransition {
  /** The alert as it was read; null if there was none. */
  readonly row: AlertRow | null;
  readonly before: AlertRecord | null;
  /** The alert after the transition. */
  readonly alert: AlertRecord;
  readonly reason: NotifyReason;
  readonly recipients: Partial<Recipients>;
  readonly identity: Pick<AlertRow, "fingerprint" | "kind" | "zoneId" | "ruleId">;
  readonly toMessage: (alertId: number) => AlertMessage | Promise<AlertMessage>;
}

/** Returns the row of an alert. */
export function toStored(
  { state, transition, spikeId, firedAtMs, resolvedAtMs, transitions }: AlertRecord,
  { fingerprint, kind, zoneId, ruleId }: NewTransition["identity"],
) {
  const resolvedAt = resolvedAtMs === null ? null : new Date(resolvedAtMs);
  const identity = { fingerprint, kind, zoneId, ruleId };
  const firedAt = new Date(firedAtMs);
  return { ...identity, state, transition, transitions: [...transitions], spikeId, resolvedAt, firedAt };
}

/** Writes a transition, its message and its outbox rows. Returns false if the alert has moved since it was read. */
export async function persistTransition(tx: Queryable, change: NewTransition): Promise<boolean> {
  const { row, before, alert, reason, recipients, identity, toMessage } = change;
  const { firedAt, ...stored } = toStored(alert, identity);
  const alertId =
    row === null || reason === "first"
      ? (await insertAlerts(tx, [{ ...stored, firedAt }])).get(identity.fingerprint)
      : (await changeAlert(tx, row, stored))
        ? row.id
        : undefined;
  if (alertId === undefined) return false;
  const message = await toMessage(alertId);
  await describeAlert(tx, alertId, { details: { message }, spikeId: alert.spikeId });
  await insertNotifications(tx, toNotifications(message, recipients, before));
  return true;
}
