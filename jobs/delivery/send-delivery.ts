import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import type { Notifier, SendOptions, SendResult } from "#stages/delivery/channel-definition.ts";
import { buildDigest } from "#stages/delivery/digest-message.ts";
import type { Delivery } from "./claim-delivery.ts";

/**
 * Time limit of one attempt, whatever the notifier itself allows. Shorter than the lease, so that no live sender
 * loses its row.
 */
const ATTEMPT_TIMEOUT_MS = 40_000;

/** Returns the stored message, or the reason why it cannot be read. */
export function readMessage(
  { notifications, digestKey }: Delivery,
  { capabilities }: Notifier,
): AlertMessage | string {
  const messages: AlertMessage[] = [];
  for (const { content } of notifications) {
    const { data, error } = alertMessage.safeParse(content);
    if (error !== undefined) {
      const fields = error.issues.map(({ path }) => path.join(".")).slice(0, 5);
      return `not an alert message: ${fields.join(", ")}`;
    }
    messages.push(data);
  }
  const [first] = messages;
  if (first === undefined) return "nothing to say";
  return digestKey === null ? first : buildDigest(messages, digestKey, capabilities.rate);
}

function toOptions({ notifications, digestKey }: Delivery): Omit<SendOptions, "signal"> {
  const [first] = notifications;
  return {
    attempt: attemptOf(notifications),
    deliveryKey: digestKey ?? first?.dedupeKey ?? "",
    providerReference: digestKey === null ? (first?.providerReference ?? null) : null,
    progress: first?.progress ?? null,
  };
}

export function attemptOf(notifications: Delivery["notifications"]): number {
  return Math.max(...notifications.map(({ attempts }) => attempts));
}

/** Sends the delivery with a deadline, so that a notifier that ignores its signal does not block the channel. */
export async function sendDelivery(
  notifier: Notifier,
  message: AlertMessage,
  delivery: Delivery,
  stopping: AbortSignal,
  onProgress: (progress: string) => void,
): Promise<SendResult> {
  const controller = new AbortController();
  const stop = () => controller.abort(stopping.reason);
  const timer = setTimeout(() => {
    controller.abort(new DOMException("the attempt took too long", "TimeoutError"));
  }, ATTEMPT_TIMEOUT_MS);
  stopping.addEventListener("abort", stop, { once: true });
  if (stopping.aborted) stop();
  const { signal } = controller;
  const { promise: ended, reject } = Promise.withResolvers<never>();
  // Nothing awaits this rejection any more if the send itself ended first.
  ended.catch(() => undefined);
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  try {
    signal.throwIfAborted();
    return await Promise.race([
      notifier.send(message, { ...toOptions(delivery), signal, onProgress }),
      ended,
    ]);
  } finally {
    clearTimeout(timer);
    stopping.removeEventListener("abort", stop);
  }
}
