import {
  type AlertRow,
  changeAlert,
  describeAlert,
  insertAlert,
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

/** Writes a transition, its message and its outbox rows. Returns false if the alert has moved since it was read. */
export async function persistTransition(tx: Queryable, change: NewTransition): Promise<boolean> {
  const { row, before, alert, reason, recipients, identity, toMessage } = change;
  const { state, transition, spikeId, firedAtMs, resolvedAtMs } = alert;
  const transitions = [...alert.transitions];
  const resolvedAt = resolvedAtMs === null ? null : new Date(resolvedAtMs);
  // A group that has spread to another zone is no longer of one zone: keys for its first zone may not see it.
  const zoneId = row !== null && row.zoneId === null ? null : identity.zoneId;
  const stored = { state, transition, transitions, spikeId, resolvedAt, kind: identity.kind, zoneId };
  const alertId =
    row === null || reason === "first"
      ? await insertAlert(tx, { ...identity, ...stored, firedAt: new Date(firedAtMs) })
      : (await changeAlert(tx, row, stored))
        ? row.id
        : null;
  if (alertId === null) return false;
  const message = await toMessage(alertId);
  await describeAlert(tx, alertId, { details: { message }, spikeId });
  await insertNotifications(tx, toNotifications(message, recipients, before));
  return true;
}
