import { z } from "zod";
import { networkSettings, secretText } from "../channel-definition.ts";
import { findSecretMistake, signWebhook } from "../channels/webhook/webhook.ts";
import { openEndpoint } from "../endpoint.ts";
import { POST_TIMEOUT_MS } from "../post.ts";
import { defineSink, postBatch, toSingleLine } from "./sink.ts";

/** Below the limits that proxies and frameworks usually have. */
const MAX_BYTES = 1_000_000;

/** Sends events as lines of JSON, signed by Standard Webhooks 1.0. A receiver answers 2xx after it has stored them. */
export const webhook = defineSink({
  kind: "webhook",
  acknowledgedWhen: "the receiver answers 2xx",
  settings: {
    /** The whole URL is secret: anyone with its path and query can post. */
    url: secretText,
    /** `whsec_...`. Give the new and the old secret while a receiver changes its secret. */
    secrets: z.array(secretText).min(1),
    ...networkSettings,
  },
  example: {
    url: "https://events.example/longwatch/example-path",
    secrets: [`whsec_${Buffer.alloc(32, "example").toString("base64")}`],
  },
  open({ name, url, secrets, network = {}, clock, timeoutMs = POST_TIMEOUT_MS }) {
    const mistakes = secrets.flatMap((secret, index) => {
      const mistake = findSecretMistake(secret);
      return mistake === null ? [] : [`secret ${index + 1} ${mistake}`];
    });
    const endpoint = openEndpoint(name, url, network, mistakes, "destination");
    return {
      count: null,
      send: (events, { batchId, signal }) =>
        postBatch(
          endpoint,
          events.map(({ body }) => `${toSingleLine(body)}\n`),
          {
            headers: { "content-type": "application/x-ndjson" },
            maxBytes: MAX_BYTES,
            timeoutMs,
            clock,
            signal,
            secrets: [...secrets, endpoint.path],
            sign(body, part) {
              const id = part === null ? batchId : `${batchId}-${part}`;
              const timestamp = String(Math.floor(clock() / 1_000));
              return {
                "webhook-id": id,
                "webhook-timestamp": timestamp,
                "webhook-signature": signWebhook(secrets, { id, timestamp, body }),
              };
            },
            read: ({ status }) => (status < 300 ? { is: "stored" } : null),
          },
        ),
    };
  },
});
