import { z } from "zod";
import { createSecret } from "#lib/secret.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { classifyAction } from "#model/action-class.ts";
import { networkSettings, secretText } from "../channel-definition.ts";
import { extendEndpoint, openEndpoint } from "../endpoint.ts";
import { POST_TIMEOUT_MS, type Reply } from "../post.ts";
import {
  defineSink,
  type ForwardedEvent,
  type PartAnswer,
  postBatch,
  toEventId,
  toNanoseconds,
  toSingleLine,
} from "./sink.ts";

/** Loki answers 429 for ever to a request above the tenant's burst, which is 6 MB by default. Its own agents send 1 MB. */
const MAX_BYTES = 1_000_000;
/** Loki refuses a line that is an hour older than the newest line of its stream (half of `max_chunk_age`). */
const LATE_MS = 30 * MINUTE_MS;
const MOST_METADATA_CHARS = 1_024;
const TENANT_RULE = "must be 1 to 150 letters, digits and the characters !-_.*'()|";

/**
 * Sends events to Grafana Loki as lines. The labels are the zone, the class of the action, and the hour of an event that
 * is late: few values, of which no visitor writes one. Loki keeps one line of two with the same labels, time and text.
 */
export const loki = defineSink({
  kind: "loki",
  acknowledgedWhen: "Loki answers 204, after it has written the line to its log",
  settings: {
    /** The address without `/loki/api/v1/push`. */
    url: z.url(),
    /** The value of the header `X-Scope-OrgID`. */
    tenant: z
      .string()
      .regex(/^[\w!.*'()|-]{1,150}$/, TENANT_RULE)
      .optional(),
    /** The value of the header `authorization`. */
    authorization: secretText.optional(),
    /** A Loki before 3.0, or one that does not allow it, refuses every line that has structured metadata. */
    structuredMetadata: z.boolean().default(true),
    ...networkSettings,
  },
  example: { url: "https://loki.example:3100" },
  open(options) {
    const { name, url, tenant, authorization, structuredMetadata, network = {}, clock } = options;
    const base = openEndpoint(name, createSecret(url), network, [], "destination");
    const endpoint = extendEndpoint(base, "/loki/api/v1/push");
    const headers = {
      ...(tenant === undefined ? {} : { "x-scope-orgid": tenant }),
      ...(authorization === undefined ? {} : { authorization: authorization.reveal() }),
    };
    const secrets = authorization === undefined ? [] : [authorization];
    return {
      count: null,
      send(events, { signal }) {
        const lateBefore = clock() - LATE_MS;
        const labels = events.map((event) => toLabels(event, lateBefore));
        const byTime = (one: number, other: number) =>
          (events[one]?.occurredAt ?? 0) - (events[other]?.occurredAt ?? 0);
        return postBatch(
          endpoint,
          events.map((event) => toValue(event, structuredMetadata)),
          {
            headers,
            secrets,
            clock,
            signal,
            timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
            maxBytes: MAX_BYTES,
            toBody(texts, positions) {
              const textOf = new Map(positions.map((position, at) => [position, texts[at]]));
              const streams = Map.groupBy(positions.toSorted(byTime), (position) => labels[position]);
              const written = [...streams].map(
                ([stream, own]) =>
                  `{"stream":${stream},"values":[${own.map((position) => textOf.get(position)).join()}]}`,
              );
              return `{"streams":[${written.join()}]}`;
            },
            read: (reply, positions) =>
              readAnswer(
                reply,
                positions.map((position) => events[position]?.occurredAt ?? 0),
              ),
          },
        );
      },
    };
  },
});

/** Returns the labels as JSON text, equal for equal labels. */
function toLabels({ zoneId, occurredAt, fields }: ForwardedEvent, lateBefore: number): string {
  return JSON.stringify({
    service_name: "longwatch",
    zone: String(zoneId),
    action: classifyAction(fields.action),
    // A backlog is sent after newer events. In the stream of its own hour, no line is too far behind.
    ...(occurredAt < lateBefore ? { late_hour: new Date(occurredAt).toISOString().slice(0, 13) } : {}),
  });
}

function toValue(event: ForwardedEvent, withMetadata: boolean): string {
  const { ruleId, ip, country } = event.fields;
  const known = Object.entries({ longwatch_id: toEventId(event), rule: ruleId, ip, country });
  const metadata = known.flatMap(([key, value]) =>
    value === "" ? [] : [[key, value.slice(0, MOST_METADATA_CHARS).toWellFormed()]],
  );
  const line = [toNanoseconds(event.occurredAt), toSingleLine(event.body)];
  return JSON.stringify(withMetadata ? [...line, Object.fromEntries(metadata)] : line);
}

/** The limit for all streams. That of one stream ("entry too far behind") says nothing about the others. */
const OLDEST =
  /has timestamp too old: [^,]+, oldest acceptable timestamp is: (\d{4}-\S+T[\d:.]+(?:Z|[+-][\d:]+))/;

/** Reads the answer to events of these times. Loki names no line that is too old, but the oldest time that it takes. */
function readAnswer({ status, body }: Reply, times: readonly number[]): PartAnswer | null {
  if (status < 300) return status === 204 || body === "" ? { is: "stored" } : null;
  const oldest = Date.parse(OLDEST.exec(body ?? "")?.[1] ?? "");
  const indexes = times.flatMap((time, index) => (time < oldest ? [index] : []));
  if (indexes.length === 0) return null;
  const reason = `answered ${status}: too old, ${new Date(oldest).toISOString()} is the oldest time that Loki takes`;
  return { is: "refused", reason, indexes };
}
