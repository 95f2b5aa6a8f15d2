import { z } from "zod";
import { createSecret, type Secret } from "#lib/secret.ts";
import { HOUR_MS } from "#lib/units.ts";
import { networkSettings, secretText } from "../channel-definition.ts";
import { DeliveryError, readReply } from "../delivery-error.ts";
import { extendEndpoint, openEndpoint } from "../endpoint.ts";
import { POST_TIMEOUT_MS, post, type Reply } from "../post.ts";
import {
  defineSink,
  type ForwardedEvent,
  type PartAnswer,
  postBatch,
  toEventId,
  toSingleLine,
  unreadableAnswer,
} from "./sink.ts";

/** Elastic advises some megabytes for one request; its limit is 100. */
const MAX_BYTES = 5_000_000;
/** 5,000 results with their reasons. */
const MAX_REPLY_BYTES = 8_000_000;
/** Keeps each document's name, version and shards out of the answer. */
const FILTER = "items.*.status,items.*.error.type,items.*.error.reason";
/** There is such a template, the key may not install one, or the program has none: events are sent all the same. */
const NOT_INSTALLED = [400, 401, 403, 404, 405];
const INDEX_RULE =
  "must be a name of lower-case letters, digits, -, _ and ., which begins with a letter or digit";

const bulkItem = z.object({
  status: z.int(),
  error: z.object({ type: z.string().default(""), reason: z.string().nullish() }).optional(),
});
const bulkAnswer = z.object({ items: z.array(z.record(z.string(), bulkItem)) });
const countAnswer = z.object({ count: z.int(), _shards: z.object({ failed: z.int() }).optional() });

/**
 * Sends events to Elasticsearch, or a program with the same API. The zone and the log id are the document's id, so an
 * event that arrives twice is one document. A revised event replaces its document.
 */
export const elastic = defineSink({
  kind: "elastic",
  acknowledgedWhen: "its line of the bulk answer is 200, 201 or 409",
  settings: {
    url: z.url(),
    index: z
      .string(INDEX_RULE)
      .regex(/^[a-z0-9][a-z0-9._-]{0,200}$/, INDEX_RULE)
      .default("longwatch-events"),
    apiKey: secretText.optional(),
    username: z.string().min(1).optional(),
    password: secretText.optional(),
    ...networkSettings,
  },
  example: { url: "https://elastic.example:9200" },
  open(options) {
    const { name, url, index, network = {}, clock, timeoutMs = POST_TIMEOUT_MS } = options;
    const { authorization, mistakes } = toAuthorization(options);
    const base = openEndpoint(name, createSecret(url), network, mistakes, "destination");
    const common = {
      headers: authorization === null ? {} : { authorization: authorization.reveal() },
      timeoutMs,
      clock,
      secrets: [options.apiKey, options.password, authorization].filter((secret) => secret instanceof Object),
    };
    const bulk = extendEndpoint(base, "/_bulk", { filter_path: FILTER });
    const counting = extendEndpoint(base, `/${index}/_count`, { ignore_unavailable: "true" });
    const template = extendEndpoint(base, `/_index_template/${index}`, { create: "true" });
    let installing: Promise<unknown> | null = null;
    /** Installs the index template once in a process, before the first event can make the index. */
    const install = (signal: AbortSignal) =>
      post(template, {
        ...common,
        method: "PUT",
        body: JSON.stringify(toIndexTemplate(index)),
        signal,
        accepts: NOT_INSTALLED,
      }).catch((thrown: unknown) => {
        installing = null;
        throw thrown;
      });
    return {
      async count({ zoneId, startsAt }, signal) {
        const range = { gte: startsAt, lt: startsAt + HOUR_MS, format: "epoch_millis" };
        const filter = [{ range: { "@timestamp": range } }, { term: { "longwatch.zone": zoneId } }];
        const body = JSON.stringify({ query: { bool: { filter } } });
        const answer = readReply((await post(counting, { ...common, body, signal })).body, countAnswer);
        // A failed shard would count too few.
        if (answer === null || (answer._shards?.failed ?? 0) > 0) throw unreadableAnswer(base.host);
        return answer.count;
      },
      async send(events, { signal }) {
        installing ??= install(signal);
        await installing;
        return postBatch(
          bulk,
          events.map((event) => toBulkLines(event, index)),
          {
            ...common,
            headers: { ...common.headers, "content-type": "application/x-ndjson" },
            maxBytes: MAX_BYTES,
            maxReplyBytes: MAX_REPLY_BYTES,
            signal,
            read: (reply, { length }) => readAnswer(reply, length, base.host),
          },
        );
      },
    };
  },
});

function toAuthorization({
  apiKey,
  username,
  password,
}: {
  readonly apiKey?: Secret | undefined;
  readonly username?: string | undefined;
  readonly password?: Secret | undefined;
}): { readonly authorization: Secret | null; readonly mistakes: readonly string[] } {
  const mistakes = [
    ...(apiKey === undefined || /^[\x21-\x7e]+$/.test(apiKey.reveal()) ? [] : ["apiKey: must be one word"]),
    ...(apiKey !== undefined && username !== undefined ? ["username: must be left out beside api_key"] : []),
    ...((username === undefined) === (password === undefined)
      ? []
      : ["username and password must be given together"]),
  ];
  if (apiKey !== undefined) return { authorization: createSecret(`ApiKey ${apiKey.reveal()}`), mistakes };
  if (username === undefined || password === undefined) return { authorization: null, mistakes };
  const basic = Buffer.from(`${username}:${password.reveal()}`).toString("base64");
  return { authorization: createSecret(`Basic ${basic}`), mistakes };
}

function toBulkLines(event: ForwardedEvent, index: string): string {
  const action = { [event.isRevised ? "index" : "create"]: { _index: index, _id: toEventId(event) } };
  const own = JSON.stringify({
    "@timestamp": new Date(event.occurredAt).toISOString(),
    "longwatch.zone": event.zoneId,
  });
  const rest = toSingleLine(event.body).trim().slice(1);
  const isEmpty = rest.trim() === "}";
  return `${JSON.stringify(action)}\n${own.slice(0, -1)}${isEmpty ? "" : ","}${rest}\n`;
}

/** Reads what became of each event. 409: the receiver has the event already. */
function readAnswer({ status, body }: Reply, count: number, host: string): PartAnswer | null {
  const answer = status < 300 ? readReply(body, bulkAnswer) : null;
  const items = answer?.items.flatMap((item) => Object.values(item)) ?? [];
  if (items.length !== count) return null;
  const refused: { index: number; reason: string }[] = [];
  const postponed: number[] = [];
  for (const [index, { status, error }] of items.entries()) {
    if (status < 300 || status === 409) continue;
    if (status === 429 || status >= 500) postponed.push(index);
    else if (status === 400) refused.push({ index, reason: `${error?.type ?? ""}: ${error?.reason ?? ""}` });
    else {
      // Rights, or an index that may not be created: no event is the reason.
      const text = `${host} answered ${status} for an event, ${error?.type ?? ""}`;
      throw new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text });
    }
  }
  return { is: "stored", refused, postponed };
}

/** Lucene refuses a longer term: 32,766 bytes, at four bytes a character. */
const IGNORE_ABOVE = 8_191;
const keyword = { type: "keyword", ignore_above: IGNORE_ABOVE };
/** Indexed only where it is an address: a masked one, such as `203.0.113.*`, is none. */
const address = { ...keyword, fields: { ip: { type: "ip", ignore_malformed: true } } };
/** Kept in `_source` as it is. What the platform writes there may be a text in one event and an object in the next. */
const unindexed = { type: "object", enabled: false };

/**
 * Returns the index template for events of every format. Without it, the first event decides what a field is: a user agent
 * that looks like a date makes the field a date, and later events are refused.
 */
export function toIndexTemplate(index: string) {
  return {
    index_patterns: [index],
    priority: 150,
    template: {
      settings: { "index.mapping.ignore_malformed": true },
      mappings: {
        date_detection: false,
        numeric_detection: false,
        dynamic_templates: [{ texts: { match_mapping_type: "string", mapping: keyword } }],
        properties: {
          "@timestamp": { type: "date" },
          longwatch: { properties: { zone: { type: "long" } } },
          timestamp: { type: "double" },
          fields: { properties: { address } },
          log: unindexed,
          src_endpoint: { properties: { ip: { type: "ip", ignore_malformed: true } } },
          raw_data: { type: "keyword", index: false, doc_values: false },
          unmapped: unindexed,
        },
      },
    },
    _meta: { description: "Events that Longwatch forwards (docs/forwarding.md)" },
  };
}
