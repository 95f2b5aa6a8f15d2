import type { Clock } from "../lib/clock.ts";
import { createSecret, type Secret } from "../lib/secret.ts";
import { extendEndpoint, openEndpoint } from "./endpoint.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";
import { toOpsgenieRequests } from "./opsgenie-requests.ts";
import { POST_TIMEOUT_MS, post } from "./post.ts";
import { sendParts } from "./send-parts.ts";

export interface OpsgenieOptions {
  readonly name: string;
  /** Of an API integration. */
  readonly apiKey: Secret;
  /** Without `/v2/alerts`; default Opsgenie's own. The EU has another, and so has what came after Opsgenie. */
  readonly url?: string | undefined;
  readonly clock: Clock;
  readonly network?: NetworkPolicy;
  readonly timeoutMs?: number;
}

const US_URL = "https://api.opsgenie.com";

/**
 * Whatever speaks Opsgenie's Alert API, which takes orders and answers 202 before it has looked at them. The alias makes
 * an alert that arrives twice one.
 * @throws {UsageError} for a bad URL or key
 */
export function createOpsgenieNotifier(options: OpsgenieOptions): Notifier {
  const { name, apiKey } = options;
  const mistakes = /^[\x21-\x7e]+$/.test(apiKey.reveal()) ? [] : ["apiKey: must be one word"];
  const endpoint = openEndpoint(name, createSecret(options.url ?? US_URL), options.network ?? {}, mistakes);
  return {
    name,
    kind: "opsgenie",
    async send(message, sending) {
      const requests = toOpsgenieRequests(message);
      return sendParts(requests.length, sending, async (index) => {
        const request = requests[index];
        if (request === undefined) return null;
        const { method, path, byAlias, body } = request;
        await post(extendEndpoint(endpoint, path, byAlias ? { identifierType: "alias" } : {}), {
          method,
          headers: { authorization: `GenieKey ${apiKey.reveal()}` },
          body: JSON.stringify(body),
          timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
          clock: options.clock,
          signal: sending.signal,
          secrets: [apiKey],
        });
        return null;
      });
    },
  };
}
