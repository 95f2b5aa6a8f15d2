import type { AlertMessage } from "#model/alert-message.ts";
import { digest } from "#model/fingerprint.ts";
import { buildSelfMessage } from "./self-message.ts";

/**
 * Returns the message that tests a channel: the first transition of an alert that does not exist, or its resolve, for
 * receivers that would otherwise keep it open. Each `nowMs` is another episode.
 */
export function buildTestMessage(channel: string, nowMs: number, reason: "first" | "resolved"): AlertMessage {
  const isOver = reason === "resolved";
  const transition = isOver ? 2 : 1;
  return buildSelfMessage({
    alertId: 0,
    fingerprint: digest(["self", "channel-test", channel]),
    reason,
    severity: "info",
    zoneId: null,
    headline: isOver
      ? `TEST of channel ${channel} ended. Nothing happened, and you need not do anything`
      : `TEST of channel ${channel}. If you can read this, the channel works. Nothing happened, and you need not do anything`,
    alert: {
      state: isOver ? "resolved" : "firing",
      transition,
      firedAtMs: nowMs,
      resolvedAtMs: isOver ? nowMs : null,
      spikeId: null,
      transitions: [],
    },
  });
}
