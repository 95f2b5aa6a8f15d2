import { readFileSync } from "node:fs";
import { Client } from "@elastic/elasticsearch";
import { Webhook } from "standardwebhooks";
import { describe, expect, onTestFinished, test } from "vitest";
import { formatEvent } from "#archive/rules/records/format-event.ts";
import { elastic, toIndexTemplate } from "#delivery/receivers/sinks/elastic.ts";
import { splunk } from "#delivery/receivers/sinks/splunk.ts";
import { createSecret } from "#lib/secret.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { DIMENSIONS, type Dimension, type EventFormat } from "#model/kinds.ts";
import { startElasticReceiver } from "../../support/receivers/elastic-receiver.ts";
import { startSplunkReceiver } from "../../support/receivers/splunk-receiver.ts";
import { failureOf } from "../support/receiver.ts";
import {
  CANARY,
  eventOf,
  eventsOf,
  HOUR,
  idsOf,
  open,
  POSTING,
  SIGNING_SECRET,
  sending,
  withReceiver,
  ZONE,
} from "./world.ts";

const { signal } = new AbortController();

async function openSplunk(
  { acknowledges, asks = 1 }: { acknowledges: boolean; asks?: number },
  over: { acknowledge?: boolean; index?: string; timeoutMs?: number } = {},
) {
  const receiver = await startSplunkReceiver({ token: CANARY, acknowledges, asks });
  return withReceiver(receiver, (url) =>
    splunk.open({
      name: "siem",
      clock: Date.now,
      network: { allowPrivateNetworks: true },
      url: `${url}/`,
      token: createSecret(CANARY),
      source: "longwatch",
      sourcetype: "longwatch:event",
      acknowledge: true,
      ...over,
    }),
  );
}

test("splunk gets time, event, fields, source, sourcetype and index, compressed", async () => {
  const { receiver, sink } = await openSplunk({ acknowledges: false }, { acknowledge: false, index: "waf" });
  await sink.send([eventOf("a", { n: 1 })], sending());
  const [request] = receiver.requests;
  expect(request?.headers).toMatchObject({ "content-encoding": "gzip", authorization: `Splunk ${CANARY}` });
  expect(request?.headers).not.toHaveProperty("x-splunk-request-channel");
  expect(JSON.parse(request?.text ?? "")).toEqual({
    time: HOUR / 1_000 + 1.234,
    event: { id: `${ZONE}-a`, n: 1 },
    fields: { longwatch_id: `${ZONE}-a`, zone: String(ZONE) },
    source: "longwatch",
    sourcetype: "longwatch:event",
    index: "waf",
  });
});

test("splunk's acknowledgement is asked for until the events are indexed", async () => {
  const { receiver, sink } = await openSplunk({ acknowledges: true, asks: 2 });
  expect(await sink.send(eventsOf(3), sending())).toMatchObject({ refused: [], postponed: [] });
  const asked = receiver.requests.filter(({ path }) => path === "/services/collector/ack");
  expect(asked).toHaveLength(2);
  const channel = receiver.requests[0]?.headers["x-splunk-request-channel"];
  expect(channel).toMatch(/^[0-9a-f-]{36}$/);
  expect(asked.map(({ query }) => query.get("channel"))).toEqual([channel, channel]);
});

test("events that splunk accepts and does not index are sent again later", async () => {
  const { sink } = await openSplunk(
    { acknowledges: true, asks: Number.POSITIVE_INFINITY },
    { timeoutMs: 100 },
  );
  expect(await failureOf(sink.send(eventsOf(3), sending()))).toMatchObject({
    code: "ENDPOINT_TIMEOUT",
    disposition: "retry",
    message: expect.stringMatching(/^127\.0\.0\.1:\d+ has not indexed the events in 0\.6 s$/),
  });
});

test("a token without acknowledgements is a mistake in the setup", async () => {
  const { sink } = await openSplunk({ acknowledges: false });
  expect(await failureOf(sink.send(eventsOf(3), sending()))).toMatchObject({
    disposition: "give-up",
    message: expect.stringContaining("turn it on for the token"),
  });
});

test("splunk names the event that it refuses, so one more request is enough", async () => {
  const { receiver, sink } = await openSplunk({ acknowledges: false }, { acknowledge: false });
  receiver.fail((ids) => ({ is: "partial", refused: ids.filter((id) => id === `${ZONE}-e300`) }));
  const { refused } = await sink.send(eventsOf(500), sending());
  expect(refused).toEqual([{ index: 300, reason: "code 6 Invalid data format" }]);
  expect(receiver.requests).toHaveLength(2);
  // Splunk had taken the events before the wrong one.
  expect(receiver.duplicates()).toBe(300);
});

test.each([
  [400, { text: "Incorrect index", code: 7, "invalid-event-number": 1 }, "give-up"],
  [200, { text: "Server is busy", code: 9 }, "retry"],
])("splunk's status %s with the body %j refuses no event", async (status, body, disposition) => {
  const { receiver, sink } = await openSplunk({ acknowledges: false }, { acknowledge: false });
  receiver.fail(() => ({ is: "status", status, body }));
  expect(await failureOf(sink.send(eventsOf(3), sending()))).toMatchObject({
    disposition,
    message: expect.stringContaining(`code ${body.code} ${body.text}`),
  });
});

function clientOf(origin: string): Client {
  const client = new Client({ node: origin, auth: { apiKey: CANARY } });
  onTestFinished(() => client.close());
  return client;
}

test("the published client of Elasticsearch stores, counts and finds documents at the receiver", async () => {
  const { receiver } = await open("elastic");
  const client = clientOf(receiver.origin);
  const result = await client.helpers.bulk({
    datasource: [
      { "@timestamp": "2026-11-21T14:00:00Z", n: 1 },
      { "@timestamp": "2026-11-21T15:00:00Z", n: 2 },
    ],
    onDocument: ({ n }) => [{ create: { _index: "events", _id: `id-${n}` } }, {}] as never,
    refreshOnCompletion: true,
  });
  expect(result).toMatchObject({ total: 2, successful: 2, failed: 0 });
  const again = await client.bulk({
    operations: [
      { create: { _index: "events", _id: "id-1" } },
      { n: 1 },
      { index: { _index: "events", _id: "id-2" } },
      { n: 3 },
    ],
  });
  expect(again.errors).toBe(true);
  expect(again.items.map((item) => Object.values(item)[0]?.status)).toEqual([409, 200]);
  expect((await client.count({ index: "events" })).count).toBe(2);
  await expect(client.count({ index: "unknown" })).rejects.toMatchObject({ statusCode: 404 });
  await expect(
    new Client({ node: receiver.origin, auth: { apiKey: "wrong" } }).count({ index: "events" }),
  ).rejects.toMatchObject({ statusCode: 401 });
});

test("the published client finds and counts the events that the sink stored", async () => {
  const { receiver, sink } = await open("elastic");
  const events = eventsOf(10);
  await sink.send(events, sending());
  const client = clientOf(receiver.origin);
  const { hits } = await client.search<Record<string, unknown>>({
    index: "events",
    query: { ids: { values: [`${ZONE}-e3`] } },
  });
  expect(hits.hits).toMatchObject([
    {
      _id: `${ZONE}-e3`,
      _source: { "@timestamp": "2026-11-21T14:00:01.234Z", "longwatch.zone": ZONE, id: `${ZONE}-e3` },
    },
  ]);
  const { count } = await client.count({
    index: "events",
    query: { bool: { filter: [{ term: { "longwatch.zone": ZONE } }] } },
  });
  expect(count).toBe(10);
});

test("elastic counts the events of one hour and one zone", async () => {
  const { sink } = await open("elastic");
  const hour = { zoneId: ZONE, startsAt: HOUR };
  expect(await sink.count?.(hour, signal)).toBe(0);
  await sink.send(
    [
      eventOf("first", {}, { occurredAt: HOUR }),
      eventOf("last", {}, { occurredAt: HOUR + 3_599_999 }),
      eventOf("before", {}, { occurredAt: HOUR - 1 }),
      eventOf("after", {}, { occurredAt: HOUR + 3_600_000 }),
      eventOf("other", {}, { zoneId: 102 }),
    ],
    sending(),
  );
  expect(await sink.count?.(hour, signal)).toBe(2);
});

test("an event that elastic has already is acknowledged, and a revised one replaces it", async () => {
  const { receiver, sink } = await open("elastic");
  await sink.send([eventOf("a", { action: "log" })], sending());
  const [same, revised] = [eventOf("a", { action: "block" }), eventOf("b", { action: "log" })];
  expect(await sink.send([same, revised], sending())).toMatchObject({ refused: [], postponed: [] });
  expect(receiver.stored.get(`${ZONE}-a`)).toMatchObject({ action: "log" });
  await sink.send([{ ...same, isRevised: true }], sending());
  expect(receiver.stored.get(`${ZONE}-a`)).toMatchObject({ action: "block" });
  expect(receiver.stored.size).toBe(2);
});

test("elastic's answer is read event by event", async () => {
  const { receiver, sink } = await open("elastic");
  receiver.fail(() => ({ is: "partial", refused: [`${ZONE}-e1`], postponed: [`${ZONE}-e3`] }));
  expect(await sink.send(eventsOf(5), sending())).toEqual({
    refused: [{ index: 1, reason: "document_parsing_exception: failed to parse field [status]" }],
    postponed: [3],
    waitMs: null,
  });
  expect([...receiver.stored.keys()]).toEqual(idsOf(eventsOf(5)).filter((_, at) => at !== 1 && at !== 3));
});

test.each([
  ["an item without rights", [{ create: { status: 403, error: { type: "security_exception" } } }], "give-up"],
  ["fewer items than events", [], "retry"],
])("elastic: %s is a failure of the batch", async (_, items, disposition) => {
  const { receiver, sink } = await open("elastic");
  receiver.fail(() => ({ is: "status", status: 200, body: { errors: true, items } }));
  expect(await failureOf(sink.send(eventsOf(1), sending()))).toMatchObject({ disposition });
});

test("elastic takes a user with a password instead of a key, and not both", async () => {
  const authorization = `Basic ${Buffer.from(`user:${CANARY}`).toString("base64")}`;
  const settings = {
    name: "siem",
    index: "events",
    clock: Date.now,
    network: { allowPrivateNetworks: true },
  };
  const password = createSecret(CANARY);
  const { sink } = withReceiver(await startElasticReceiver({ authorization }), (url) =>
    elastic.open({ ...settings, url, username: "user", password }),
  );
  expect(await sink.send(eventsOf(1), sending())).toMatchObject({ refused: [] });
  expect(() =>
    elastic.open({ ...settings, url: "ftp://x", username: "user", apiKey: createSecret("a b") }),
  ).toThrow(
    /destination siem: apiKey: must be one word\n.*username: must be left out beside api_key\n.*must be given together\n.*must be https/s,
  );
});

test("an otlp record has times in nanoseconds, the event as text, its id and its zone", async () => {
  const { receiver, sink } = await open("otlp");
  await sink.send([eventOf("a", { n: 1 })], sending());
  const { resourceLogs } = JSON.parse(receiver.requests[0]?.text ?? "");
  expect(resourceLogs[0].resource.attributes).toEqual([
    { key: "service.name", value: { stringValue: "longwatch" } },
  ]);
  expect(resourceLogs[0].scopeLogs[0].logRecords).toEqual([
    {
      timeUnixNano: `${HOUR + 1_234}000000`,
      observedTimeUnixNano: expect.stringMatching(/^\d{13}000000$/),
      body: { stringValue: `{"id":"${ZONE}-a","n":1}` },
      attributes: [
        { key: "log.record.uid", value: { stringValue: `${ZONE}-a` } },
        { key: "longwatch.zone", value: { intValue: String(ZONE) } },
      ],
    },
  ]);
});

test("otlp: rejected records are found by halving, and records that are all rejected need no halving", async () => {
  const { receiver, sink } = await open("otlp");
  receiver.fail((ids) => ({ is: "partial", refused: ids.filter((id) => /-e[45]$/.test(id)) }));
  const { refused } = await sink.send(eventsOf(8), sending());
  expect(refused).toEqual([
    { index: 4, reason: "rejected: record is invalid" },
    { index: 5, reason: "rejected: record is invalid" },
  ]);
  // 8, 0-3, 4-7, and 4-5, of which both are rejected, 6-7.
  expect(receiver.requests).toHaveLength(5);
});

test("otlp: a warning in a full success changes nothing", async () => {
  const { receiver, sink } = await open("otlp");
  receiver.fail(() => ({
    is: "status",
    status: 200,
    body: { partialSuccess: { errorMessage: "old client" } },
  }));
  expect(await sink.send(eventsOf(2), sending())).toMatchObject({ refused: [], postponed: [] });
});

test("a webhook's signature is that of Standard Webhooks, and its id is the batch's for every attempt", async () => {
  const { receiver, sink } = await open("webhook");
  await sink.send(eventsOf(3), sending({ batchId: "digest-1" }));
  await sink.send(eventsOf(3), sending({ batchId: "digest-1" }));
  for (const { headers, text } of receiver.requests) {
    expect(headers).toMatchObject({ "webhook-id": "digest-1", "content-type": "application/x-ndjson" });
    const verify = (body: string) =>
      new Webhook(SIGNING_SECRET).verify(body, headers as Record<string, string>, { jsonParse: false });
    expect(() => verify(text)).not.toThrow();
    expect(() => verify(`${text} `)).toThrow("No matching signature");
  }
});

test("a part of a webhook's batch has an id of its own, equal for every attempt", async () => {
  const { receiver, sink } = await open("webhook");
  receiver.fail((ids) => ({ is: "partial", refused: ids.filter((id) => id === `${ZONE}-e1`) }));
  const idsOfAttempt = async () => {
    const before = receiver.requests.length;
    await sink.send(eventsOf(4), sending());
    return receiver.requests.slice(before).map(({ headers }) => headers["webhook-id"]);
  };
  const first = await idsOfAttempt();
  expect(first).toEqual(["batch-1", "batch-1-0-1", "batch-1-0-0", "batch-1-1-1", "batch-1-2-3"]);
  expect(await idsOfAttempt()).toEqual(first);
});

/** Values that a visitor or the platform may write into any text. */
const FOREIGN_TEXTS = [
  "2026-11-27",
  "2026/11/27",
  "true",
  "12",
  "1e5",
  "",
  "203.0.113.*",
  "203.0.113.7",
  "x".repeat(40_000),
];

/** Events of a format whose texts take every foreign value, in this order. */
function foreignEvents(format: EventFormat, texts: readonly string[]) {
  return texts.map((text, index) => {
    const log = {
      Message: text,
      Url: text,
      RemoteIp: text,
      Headers: [],
      Extra: index % 2 === 0 ? text : { a: text },
    };
    const labels = { asn: text, country: text, severity: text, method: text };
    const record = Buffer.from(
      JSON.stringify({ logId: `f${index}`, timestamp: HOUR, log: JSON.stringify(log), labels }),
    );
    const fields = Object.fromEntries(DIMENSIONS.map((name) => [name, text])) as Record<Dimension, string>;
    const event = {
      logId: `f${index}`,
      occurredAt: HOUR,
      route: "list",
      message: text,
      zoneId: ZONE,
      method: "",
      requestId: "",
      fields,
    };
    return eventOf(
      `f${index}`,
      {},
      { body: formatEvent(format, event, record, { vendor: null, actions: BUILT_IN_ACTIONS }) },
    );
  });
}

describe.each(["event", "raw", "ocsf"] as const)(
  "format %s at Elasticsearch's documented mapping",
  (format) => {
    test.each(FOREIGN_TEXTS.map((text, at) => [text.slice(0, 20), at] as const))(
      "an index whose first document has %j everywhere takes all others",
      async (_text, at) => {
        const { sink } = await open("elastic");
        const texts = [...FOREIGN_TEXTS.slice(at), ...FOREIGN_TEXTS.slice(0, at)];
        expect(await sink.send(foreignEvents(format, texts), sending())).toMatchObject({ refused: [] });
      },
    );
  },
);

test("the receiver of these tests refuses later documents without the template, as Elasticsearch does", async () => {
  const { sink } = withReceiver(
    await startElasticReceiver({ authorization: `ApiKey ${CANARY}`, mayInstall: false }),
    (origin) => POSTING.elastic.open(origin),
  );
  const answer = await sink.send(
    foreignEvents("event", ["2026-11-27", "curl/8.1", "203.0.113.*"]),
    sending(),
  );
  expect(answer.refused.map(({ index }) => index)).toEqual([1, 2]);
});

test("elastic's template is installed once, before the first event, and an existing one is kept", async () => {
  const { receiver, sink } = await open("elastic");
  await sink.send(eventsOf(2), sending());
  await sink.send(eventsOf(2), sending());
  await POSTING.elastic.open(receiver.origin).send(eventsOf(2), sending());
  expect(receiver.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "PUT /_index_template/events",
    "POST /_bulk",
    "POST /_bulk",
    "PUT /_index_template/events",
    "POST /_bulk",
  ]);
});

test("the shipped index template is the one that is installed", () => {
  const file = new URL("../../../deploy/elasticsearch/index-template.json", import.meta.url);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(toIndexTemplate("longwatch-events"));
});
