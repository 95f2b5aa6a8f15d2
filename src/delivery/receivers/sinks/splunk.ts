import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { createSecret } from "#lib/secret.ts";
import { toLine } from "#lib/text.ts";
import { networkSettings, secretText } from "../channel-definition.ts";
import { DeliveryError, readReply } from "../delivery-error.ts";
import { extendEndpoint, openEndpoint } from "../endpoint.ts";
import { POST_TIMEOUT_MS, post, type Reply } from "../post.ts";
import { defineSink, type ForwardedEvent, type PartAnswer, postBatch, toEventId } from "./sink.ts";

/** Splunk Cloud's limit for one request. */
const MAX_BYTES = 1_000_000;
/** Codes that concern an event: its format, no event, an empty event, its indexed fields. Other codes concern the setup. */
const EVENT_CODES = new Set([6, 12, 13, 15]);
/** Splunk asks that a client asks at most every 10 seconds in production, and answers sooner. */
const FIRST_ASK_MS = 250;
const LONGEST_ASK_MS = 10_000;
/** Time for indexing, in time limits of one request. */
const ACK_TIMEOUTS = 6;

const hecAnswer = z.object({
  text: z.string().default(""),
  code: z.int(),
  ackId: z.int().optional(),
  "invalid-event-number": z.int().optional(),
});
const ackAnswer = z.object({ acks: z.record(z.string(), z.boolean()) });

/**
 * Sends events to Splunk's HTTP Event Collector. Its 200 means that Splunk has accepted the events, not that it has
 * indexed them. With `acknowledge`, an event is acknowledged when Splunk says that it is indexed. A lost answer leads to
 * a second copy: `longwatch_id` finds it.
 */
export const splunk = defineSink({
  kind: "splunk",
  acknowledgedWhen: "Splunk accepts it, or with acknowledge: true indexes it",
  settings: {
    /** The address without `/services/collector`. */
    url: z.url(),
    token: secretText,
    /** Default: the token's own index. */
    index: z.string().min(1).max(255).optional(),
    source: z.string().min(1).max(255).default("longwatch"),
    sourcetype: z.string().min(1).max(255).default("longwatch:event"),
    acknowledge: z.boolean().default(false),
    ...networkSettings,
  },
  example: { url: "https://splunk.example:8088", token: "example-token" },
  open(options) {
    const { name, url, token, acknowledge, network = {}, clock, timeoutMs = POST_TIMEOUT_MS } = options;
    const mistakes = /^[\x21-\x7e]+$/.test(token.reveal()) ? [] : ["token: must be one word"];
    const base = openEndpoint(name, createSecret(url), network, mistakes, "destination");
    const endpoint = extendEndpoint(base, "/services/collector/event");
    const channel = randomUUID();
    const ackEndpoint = extendEndpoint(base, "/services/collector/ack", { channel });
    const common = {
      headers: {
        authorization: `Splunk ${token.reveal()}`,
        ...(acknowledge ? { "x-splunk-request-channel": channel } : {}),
      },
      timeoutMs,
      clock,
      secrets: [token],
    };

    async function untilIndexed(ackId: number, signal: AbortSignal): Promise<void> {
      const endsAt = performance.now() + ACK_TIMEOUTS * timeoutMs;
      for (let pauseMs = FIRST_ASK_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_ASK_MS)) {
        await sleep(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
        const reply = await post(ackEndpoint, { ...common, body: JSON.stringify({ acks: [ackId] }), signal });
        if (readReply(reply.body, ackAnswer)?.acks[ackId] === true) return;
        if (performance.now() > endsAt) {
          const text = `${base.host} has not indexed the events in ${(ACK_TIMEOUTS * timeoutMs) / 1_000} s`;
          throw new DeliveryError({ code: "ENDPOINT_TIMEOUT", disposition: "retry", text });
        }
      }
    }

    async function readAnswer(reply: Reply, signal: AbortSignal): Promise<PartAnswer | null> {
      const answer = readReply(reply.body, hecAnswer);
      if (answer === null) return null;
      const { text, code, ackId, "invalid-event-number": index } = answer;
      const reason = `code ${code} ${toLine(text, 100)}`;
      if (EVENT_CODES.has(code))
        return { is: "refused", reason, indexes: index === undefined ? [] : [index] };
      if (code !== 0) throw toFailure(`${base.host} answered ${reply.status}, ${reason}`, reply.status);
      if (!acknowledge) return { is: "stored" };
      if (ackId === undefined)
        throw toFailure(`${base.host} gave no acknowledgement id: turn it on for the token`, 400);
      await untilIndexed(ackId, signal);
      return { is: "stored" };
    }

    return {
      count: null,
      send: (events, { signal }) =>
        postBatch(
          endpoint,
          events.map((event) => toHecEvent(event, options)),
          { ...common, maxBytes: MAX_BYTES, signal, read: (reply) => readAnswer(reply, signal) },
        ),
    };
  },
});

function toHecEvent(
  event: ForwardedEvent,
  { index, source, sourcetype }: { index?: string | undefined; source: string; sourcetype: string },
): string {
  const fields = { longwatch_id: toEventId(event), zone: String(event.zoneId) };
  const members = JSON.stringify({ fields, source, sourcetype, index });
  return `{"time":${(event.occurredAt / 1_000).toFixed(3)},"event":${event.body},${members.slice(1)}`;
}

/** A mistake in the setup needs a person. An error in a 2xx answer passes. */
function toFailure(text: string, status: number): DeliveryError {
  return status < 300
    ? new DeliveryError({ code: "ENDPOINT_UNAVAILABLE", disposition: "retry", text })
    : new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text });
}
