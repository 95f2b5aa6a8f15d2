import type { Clock } from "../lib/clock.ts";
import type { Secret } from "../lib/secret.ts";
import { openEndpoint } from "./endpoint.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";
import { POST_TIMEOUT_MS, post } from "./post.ts";
import { sendParts } from "./send-parts.ts";
import { toTeamsMessage, toTeamsParts } from "./teams-card.ts";

export interface TeamsOptions {
  readonly name: string;
  /** Of a flow that starts "when a Teams webhook request is received": its query holds the signature. */
  readonly url: Secret;
  readonly clock: Clock;
  readonly network?: NetworkPolicy;
  readonly timeoutMs?: number;
}

/**
 * Microsoft Teams by way of Workflows. A flow cannot edit its card, so every transition is one. It answers 202 before the
 * card is shown: what goes wrong inside the flow, or after its owner has left, is not told to us.
 * @throws {UsageError} for a bad URL
 */
export function createTeamsNotifier(options: TeamsOptions): Notifier {
  const endpoint = openEndpoint(options.name, options.url, options.network ?? {});
  return {
    name: options.name,
    kind: "teams",
    async send(message, sending) {
      const parts = [toTeamsMessage(message), ...toTeamsParts(message)];
      return sendParts(parts.length, sending, async (index) => {
        await post(endpoint, {
          headers: {},
          body: JSON.stringify(parts[index]),
          timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
          clock: options.clock,
          signal: sending.signal,
        });
        return null;
      });
    },
  };
}
