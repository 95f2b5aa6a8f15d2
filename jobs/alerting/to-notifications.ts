import type { NewNotification } from "../../db/alerting/alerts.ts";
import { addressMessage } from "../../src/alerting/message/address-message.ts";
import type { AlertMessage } from "../../src/model/alert-message.ts";
import type { AlertRecord } from "../../src/model/alert-record.ts";
import { notificationKeyOf } from "../../src/model/dedupe-key.ts";

/** Who is sent a message, who of them without a sound, and the alert as it was before. */
export interface Addressees {
  readonly channels: readonly string[];
  readonly quiet?: readonly string[];
  readonly alert: AlertRecord | null;
}

/** The outbox rows of one message, each with what its channel should read. */
export function toNotifications(message: AlertMessage, addressees: Addressees): NewNotification[] {
  const { alertId, transition, dedupeKey } = message;
  return addressees.channels.map((channel) => {
    const content = addressMessage(message, channel, addressees);
    return {
      alertId,
      transition,
      reason: content.reason,
      channel,
      dedupeKey: notificationKeyOf(dedupeKey, transition, channel),
      content,
    };
  });
}
