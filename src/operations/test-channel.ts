import type { AlertMessage } from "#model/alert-message.ts";
import { notificationKeyOf } from "#model/fingerprint.ts";
import { buildTestMessage } from "#stages/alerting/message/test-message.ts";
import type { Notifier } from "#stages/delivery/channel-definition.ts";
import { describeFailure } from "#stages/delivery/delivery-error.ts";

/** Longer than any channel's own limit. */
const TIMEOUT_MS = 40_000;

export interface ChannelTest {
  readonly isDelivered: boolean;
  /** Null if the message was delivered. */
  readonly code: string | null;
  /** One line, free of secrets. */
  readonly text: string;
}

/** Sends the test message once with these links, and resolves it if the receiver keeps incidents open. Never throws. */
export async function testChannel(
  notifier: Notifier,
  nowMs: number,
  links: AlertMessage["links"],
): Promise<ChannelTest> {
  // The receiver keeps an incident open until it is resolved.
  const isKept = notifier.capabilities.laterTransitions === "same-incident";
  const reasons = isKept ? (["first", "resolved"] as const) : (["first"] as const);
  let providerReference: string | null = null;
  try {
    for (const reason of reasons) {
      const message = { ...buildTestMessage(notifier.name, nowMs, reason), links };
      const deliveryKey = notificationKeyOf(message.dedupeKey, message.transition, notifier.name);
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const sent = await notifier.send(message, { signal, attempt: 1, deliveryKey, providerReference });
      providerReference = sent.providerReference;
    }
    return { isDelivered: true, code: null, text: "the receiver accepted the test message" };
  } catch (thrown) {
    const { code, text, disposition } = describeFailure(thrown);
    const next =
      disposition === "give-up"
        ? "a notification would become a dead letter"
        : "a notification would be retried";
    return { isDelivered: false, code, text: `not delivered: ${code}: ${text} (${next})` };
  }
}
