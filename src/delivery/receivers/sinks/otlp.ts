import { z } from "zod";
import { createSecret } from "#lib/secret.ts";
import { networkSettings, secretText } from "../channel-definition.ts";
import { readReply } from "../delivery-error.ts";
import { extendEndpoint, openEndpoint } from "../endpoint.ts";
import { POST_TIMEOUT_MS, type Reply } from "../post.ts";
import {
  defineSink,
  type ForwardedEvent,
  type PartAnswer,
  postBatch,
  toEventId,
  toNanoseconds,
} from "./sink.ts";

/** The limit of a collector's gRPC side, which often stands behind the HTTP side. */
const MAX_BYTES = 4_000_000;

const HEAD =
  '{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"longwatch"}}]},"scopeLogs":[{"scope":{"name":"longwatch"},"logRecords":[';
const TAIL = "]}]}]}";

/** int64 is text in the JSON of protocol buffers; some receivers write a number. */
const exportAnswer = z.object({
  partialSuccess: z
    .object({
      rejectedLogRecords: z.union([z.string().regex(/^\d{1,15}$/), z.number()]).default(0),
      errorMessage: z.string().default(""),
    })
    .nullish(),
});

/**
 * Sends events as log records by OTLP/HTTP in JSON. The event is the record's body as text, because every receiver keeps
 * a text as it is. A partial success does not say which records were rejected, so the batch is halved until they are
 * found; the accepted ones arrive again, with the same `log.record.uid`.
 */
export const otlp = defineSink({
  kind: "otlp",
  acknowledgedWhen: "the answer does not reject it",
  settings: {
    /** The address without `/v1/logs`. */
    url: z.url(),
    /** The value of the header `authorization`. */
    authorization: secretText.optional(),
    ...networkSettings,
  },
  example: { url: "https://collector.example:4318" },
  open({ name, url, authorization, network = {}, clock, timeoutMs = POST_TIMEOUT_MS }) {
    const base = openEndpoint(name, createSecret(url), network, [], "destination");
    const endpoint = extendEndpoint(base, "/v1/logs");
    const secrets = authorization === undefined ? [] : [authorization];
    const headers = authorization === undefined ? {} : { authorization: authorization.reveal() };
    const toBody = (records: readonly string[]) => `${HEAD}${records.join(",")}${TAIL}`;
    const common = { headers, secrets, timeoutMs, clock, maxBytes: MAX_BYTES, toBody, read: readAnswer };
    return {
      count: null,
      send(events, { signal }) {
        const observedMs = clock();
        return postBatch(
          endpoint,
          events.map((event) => toLogRecord(event, observedMs)),
          { ...common, signal },
        );
      },
    };
  },
});

function readAnswer({ status, body }: Reply, { length }: readonly number[]): PartAnswer | null {
  const answer = status < 300 ? readReply(body === "" ? "{}" : body, exportAnswer) : null;
  if (answer === null) return null;
  const { rejectedLogRecords = 0, errorMessage = "" } = answer.partialSuccess ?? {};
  const reason = `rejected: ${errorMessage}`;
  if (Number(rejectedLogRecords) === 0) return { is: "stored" };
  if (Number(rejectedLogRecords) < length) return { is: "refused", reason };
  return { is: "stored", refused: Array.from({ length }, (_, index) => ({ index, reason })) };
}

function toLogRecord(event: ForwardedEvent, observedMs: number): string {
  return JSON.stringify({
    timeUnixNano: toNanoseconds(event.occurredAt),
    observedTimeUnixNano: toNanoseconds(observedMs),
    body: { stringValue: event.body },
    attributes: [
      { key: "log.record.uid", value: { stringValue: toEventId(event) } },
      { key: "longwatch.zone", value: { intValue: String(event.zoneId) } },
    ],
  });
}
