import type { NewNotification } from "../db/queries/alerts.ts";
import { notificationKeyOf } from "../src/alert/dedupe-key.ts";
import type { AlertMessage } from "../src/channel/alert-message.ts";

/** The outbox rows of one message. */
export function toNotifications(message: AlertMessage, channels: readonly string[]): NewNotification[] {
  const { alertId, transition, reason, dedupeKey } = message;
  return channels.map((channel) => ({
    alertId,
    transition,
    reason,
    channel,
    dedupeKey: notificationKeyOf(dedupeKey, transition, channel),
    content: message,
  }));
}
