import type { Clock } from "../lib/clock.ts";
import { createSecret, type Secret } from "../lib/secret.ts";
import { openEndpoint } from "./endpoint.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";
import { toPagerDutyEvent } from "./pagerduty-event.ts";
import { POST_TIMEOUT_MS, post } from "./post.ts";

export interface PagerDutyOptions {
  readonly name: string;
  /** The integration key of an Events API v2 integration. */
  readonly routingKey: Secret;
  /** Default the US service region; the EU has a host of its own. */
  readonly url?: string | undefined;
  readonly clock: Clock;
  readonly network?: NetworkPolicy;
  readonly timeoutMs?: number;
}

const US_URL = "https://events.pagerduty.com/v2/enqueue";

/**
 * PagerDuty's Events API v2. The dedup key makes an event that arrives twice one incident.
 * @throws {UsageError} for a bad URL or key
 */
export function createPagerDutyNotifier(options: PagerDutyOptions): Notifier {
  const { name, routingKey, clock } = options;
  const isKey = /^[\x21-\x7e]{32}$/.test(routingKey.reveal());
  const mistakes = isKey ? [] : ["routingKey: must be 32 characters"];
  const endpoint = openEndpoint(name, createSecret(options.url ?? US_URL), options.network ?? {}, mistakes);
  return {
    name,
    kind: "pagerduty",
    async send(message, { signal }) {
      await post(endpoint, {
        headers: {},
        body: JSON.stringify({ routing_key: routingKey.reveal(), ...toPagerDutyEvent(message) }),
        timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
        clock,
        signal,
        secrets: [routingKey],
      });
      return { providerReference: null };
    },
  };
}
