import type { AlertMessage } from "#model/alert-message.ts";
import { notificationKeyOf } from "#model/fingerprint.ts";
import type { NotifyReason } from "#model/kinds.ts";
import { ENDINGS } from "#model/words.ts";
import type { AlertRecord, Recipients } from "./alert-record.ts";

/** The reasons of messages about an alert that a channel knows already. */
const GOES_ON = ["join", "again", "worse", "repeat", "turned"] as const satisfies readonly NotifyReason[];

/** The outbox rows of one message, each with the message as its channel should read it. `before` is the alert before the transition. */
export function toNotifications(
  message: AlertMessage,
  { notified, updated = [] }: Partial<Recipients>,
  before: AlertRecord | null,
) {
  const { alertId, transition, dedupeKey } = message;
  return [...(notified ?? []), ...updated].map((channel) => {
    const content = addressMessage(message, channel, before, updated.includes(channel));
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

/**
 * Rewords the message for a channel that was never sent the alert: the alert fires, not got worse or still fires. For a
 * channel whose last notification was the resolve, the alert fires again.
 */
function addressMessage(
  message: AlertMessage,
  channel: string,
  before: AlertRecord | null,
  isUpdate: boolean,
): AlertMessage {
  if (!GOES_ON.some((reason) => reason === message.reason)) return message;
  const sent = before?.transitions.filter((entry) => entry.channels.includes(channel)) ?? [];
  // An update in place notified no one, so an earlier notification counts.
  const last = sent.findLast((entry) => !entry.quiet.includes(channel)) ?? sent.at(-1);
  if (last === undefined) return { ...message, reason: "first" };
  return {
    ...message,
    ...(ENDINGS.some((reason) => reason === last.reason) ? { isAgain: true } : {}),
    ...(isUpdate ? { isQuiet: true } : {}),
  };
}
