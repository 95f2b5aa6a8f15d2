import type { Queryable } from "#db/client.ts";
import { readAlertSpike } from "#db/detection/feed-spikes.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { type Trace, traceNotification } from "#model/spike-trace.ts";
import type { Delivery } from "./claim-delivery.ts";
import { attemptOf } from "./send-delivery.ts";

interface SentDelivery {
  readonly message: AlertMessage;
  readonly delivery: Delivery;
  readonly channel: string;
  /** Epoch ms. */
  readonly sendingAt: number;
}

/** Adds an accepted message to the trace of its spike. A failure is ignored: the message was sent. */
export async function traceSent(
  db: Queryable,
  trace: Trace,
  { message, delivery: { notifications }, channel, sendingAt }: SentDelivery,
): Promise<void> {
  const { alertId, transition, reason } = message;
  const spike = await readAlertSpike(db, alertId).catch(() => null);
  if (spike === null) return;
  const ageMs = Math.max(...notifications.map((one) => one.ageMs));
  trace(
    traceNotification(spike, {
      channel,
      reason,
      alertId,
      transition,
      attempt: attemptOf(notifications),
      writtenAt: sendingAt - ageMs,
      sendingAt,
      acceptedAt: Date.now(),
    }),
  );
}
