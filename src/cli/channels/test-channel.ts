import { buildTestMessage } from "../../alerting/message/test-message.ts";
import { describeFailure } from "../../channel/describe-failure.ts";
import type { Notifier } from "../../channel/notifier.ts";
import type { AlertMessage } from "../../model/alert-message.ts";
import { notificationKeyOf } from "../../model/dedupe-key.ts";

/** Longer than any channel's own limit. */
const TIMEOUT_MS = 40_000;
/** Their receivers open an incident for a firing and keep it until they are told of its end. */
const KEEPS_INCIDENTS = new Set(["pagerduty", "opsgenie", "alertmanager"]);

interface ChannelTest {
  readonly isDelivered: boolean;
  /** Null where it was delivered. */
  readonly code: string | null;
  /** One line, free of secrets. */
  readonly text: string;
}

/** Sends the test message once with these links, and its end where the receiver needs one. Never throws. */
export async function testChannel(
  notifier: Notifier,
  nowMs: number,
  links: AlertMessage["links"],
): Promise<ChannelTest> {
  const reasons = KEEPS_INCIDENTS.has(notifier.kind)
    ? (["first", "resolved"] as const)
    : (["first"] as const);
  let providerReference: string | null = null;
  try {
    for (const reason of reasons) {
      const message = { ...buildTestMessage(notifier.name, nowMs, reason), links };
      const deliveryKey = notificationKeyOf(message.dedupeKey, message.transition, notifier.name);
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const sent = await notifier.send(message, { signal, attempt: 1, deliveryKey, providerReference });
      providerReference = sent.providerReference;
    }
    return { isDelivered: true, code: null, text: "the receiver took the test message over" };
  } catch (thrown) {
    const { code, text, disposition } = describeFailure(thrown);
    const next = disposition === "give-up" ? "an alert would be given up" : "an alert would be tried again";
    return { isDelivered: false, code, text: `not delivered: ${code}: ${text} (${next})` };
  }
}
