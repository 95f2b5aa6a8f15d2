import { inspect } from "node:util";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { NetworkPolicy } from "#delivery/receivers/endpoint.ts";
import { kafka } from "#delivery/receivers/sinks/kafka.ts";
import { createSecret } from "#lib/secret.ts";
import {
  findKcat,
  type ProduceFault,
  startKafka,
  startKafkaProxies,
  TOPIC,
} from "../../support/receivers/kafka-cluster.ts";
import { failureOf, scriptedLookup } from "../support/receiver.ts";
import { createSelfSigned } from "../support/self-signed.ts";
import { CANARY, eventOf, HOUR, idsOf, sending, ZONE } from "./world.ts";

const own = createSelfSigned("localhost");
const STORED = { refused: [], postponed: [], waitMs: null };

interface Over {
  readonly tls?: boolean;
  readonly login?: { mechanism: "plain" | "scram-sha-256"; user: string; password: string };
  readonly clientCertificate?: string;
  readonly maxMessageBytes?: number;
  readonly timeoutMs?: number;
  readonly network?: NetworkPolicy;
}

function openAt(brokers: readonly string[], { login, clientCertificate, network, ...over }: Over = {}) {
  return kafka.open({
    name: "bus",
    brokers: [...brokers],
    topic: TOPIC,
    tls: false,
    maxMessageBytes: 1_000_000,
    clock: Date.now,
    network: { allowPrivateNetworks: true, ...network },
    ...(login === undefined ? {} : { login: { ...login, password: createSecret(login.password) } }),
    ...(clientCertificate === undefined ? {} : { clientCertificate: createSecret(clientCertificate) }),
    timeoutMs: 5_000,
    ...over,
  });
}

const kcat = findKcat();
const cluster = kcat === null ? null : await startKafka(kcat);
afterAll(() => cluster?.stop());
const { brokers, messages } = cluster ?? { brokers: [], messages: [] };

let named = 0;
/** Events with ids that no other test has. */
function someEvents(count: number, more: object = {}) {
  named += 1;
  return Array.from({ length: count }, (_, at) => eventOf(`t${named}-${at}`, more));
}

async function openBehind(options: Parameters<typeof startKafkaProxies>[1], over: Over = {}) {
  const proxies = await startKafkaProxies(brokers, options);
  onTestFinished(() => proxies.stop());
  return openAt(proxies.brokers, over);
}

/** Waits until these events are in the topic, and returns their messages. */
async function arrived(events: readonly ReturnType<typeof eventOf>[]) {
  const keys = new Set(idsOf(events));
  const find = () => messages.filter(({ key }) => keys.has(key));
  await vi.waitFor(() => expect(new Set(find().map(({ key }) => key)).size).toBe(keys.size), {
    timeout: 10_000,
  });
  return find();
}

/** Fails the first requests with these faults. */
function first(...faults: readonly ProduceFault[]) {
  const left = [...faults];
  return () => left.shift() ?? null;
}

test("every mistake is named at once, and no secret is shown", () => {
  const network = { allowPrivateNetworks: false };
  const open = () => openAt(["10.0.0.7:9092", "localhost:9092"], { clientCertificate: CANARY, network });
  expect(open).toThrow(
    /brokers: 10\.0\.0\.7 is not a public address \(private\)\n.*localhost is not a public address \(loopback\)\n.*client_certificate: must hold a certificate and its private key in PEM\n.*tls: false is allowed only if private addresses are allowed/s,
  );
});

const why = kcat === null ? " (skipped: kcat is not on PATH)" : "";
describe.skipIf(kcat === null)(`against the brokers of librdkafka${why}`, () => {
  test("500 events are in the topic with their keys, times and texts, in the partitions of Kafka's own producer", async () => {
    const hostile = { text: 'a\r\nb\u2028"}\u0000😀\ud800é' };
    const events = [eventOf("hostile", hostile), ...someEvents(499)];
    expect(await openAt(brokers).send(events, sending())).toEqual(STORED);
    const found = await arrived(events);
    expect(found).toHaveLength(500);
    expect(new Set(found.map(({ partition }) => partition)).size).toBe(4);
    const one = found.find(({ key }) => key === `${ZONE}-hostile`);
    expect(one).toMatchObject({ ts: HOUR + 1_234 });
    expect(JSON.parse(one?.payload ?? "")).toMatchObject(hostile);
    // As librdkafka's partitioner `murmur2` chooses, which is that of Kafka's own producer.
    await openAt(brokers).send([eventOf("e0"), eventOf("e1"), eventOf("e7"), eventOf("e1999")], sending());
    const chosen = await arrived(["e0", "e1", "e7", "e1999"].map((id) => eventOf(id)));
    expect(Object.fromEntries(chosen.map(({ key, partition }) => [key, partition]))).toEqual({
      "101-e0": 0,
      "101-e1": 3,
      "101-e7": 2,
      "101-e1999": 3,
    });
  });

  test("events arrive over TLS with a login, and a broker that no authority vouches for gets none", async () => {
    const login = { mechanism: "plain", user: "longwatch", password: CANARY } as const;
    const proxied = { secure: own, login };
    const events = someEvents(20);
    const over = { tls: true, login, network: { ca: own.cert } };
    expect(await (await openBehind(proxied, over)).send(events, sending())).toEqual(STORED);
    await arrived(events);
    const untrusted = await openBehind(proxied, { ...over, network: { ca: createSelfSigned("x").cert } });
    expect(await failureOf(untrusted.send(someEvents(1), sending()))).toMatchObject({
      message: expect.stringContaining("name the file of its authority in ca_file"),
    });
    const stranger = await openBehind(proxied, { ...over, login: { ...login, password: `wrong-${CANARY}` } });
    const error = await failureOf(stranger.send(someEvents(1), sending()));
    expect(error).toMatchObject({
      disposition: "give-up",
      message: expect.stringContaining("answered SASL_AUTHENTICATION_FAILED"),
    });
    expect(inspect(error, { depth: 9 })).not.toContain(CANARY);
  });

  test.each([
    ["NOT_ENOUGH_REPLICAS", "retry", 19],
    ["TOPIC_AUTHORIZATION_FAILED", "give-up", 29],
  ] as const)("the answer %s for every partition means %s", async (name, disposition, code) => {
    const sink = await openBehind({ fault: () => ({ is: "error", code }) });
    expect(await failureOf(sink.send(someEvents(40), sending()))).toMatchObject({
      disposition,
      message: expect.stringMatching(new RegExp(`^localhost:\\d+ answered ${name}$`)),
    });
  });

  test("if one partition fails, its events are postponed, and the others are acknowledged", async () => {
    const sink = await openBehind({
      fault: ({ partition }) => (partition === 2 ? { is: "error", code: 19 } : null),
    });
    const events = someEvents(100);
    const { refused, postponed } = await sink.send(events, sending());
    expect(refused).toEqual([]);
    const found = await arrived(events.filter((_, at) => !postponed.includes(at)));
    expect(found).toHaveLength(100 - postponed.length);
    expect(new Set(found.map(({ partition }) => partition))).toEqual(new Set([0, 1, 3]));
  });

  test("messages above the topic's limit are halved, and one that is alone too large is refused", async () => {
    const sink = await openBehind({ fault: ({ bytes }) => (bytes > 600 ? { is: "error", code: 10 } : null) });
    const events = someEvents(60);
    const noise = Array.from({ length: 900 }, (_, at) => Math.sin(at).toString(36)).join("");
    const big = eventOf("big", { noise });
    expect(await sink.send([...events, big], sending())).toMatchObject({
      refused: [{ index: 60, reason: expect.stringContaining("the event is too large") }],
      postponed: [],
    });
    expect(await arrived(events)).toHaveLength(60);
    const small = openAt(brokers, { maxMessageBytes: 1_000 });
    expect(await small.send([big], sending())).toMatchObject({
      refused: [{ index: 0, reason: expect.stringContaining("at most 1000 are sent") }],
    });
  });

  test("a message that the broker refuses is refused, and no other", async () => {
    let asked = 0;
    const sink = await openBehind({
      fault: ({ bytes }) => {
        asked += 1;
        return bytes > 500 ? { is: "error", code: 87 } : null;
      },
    });
    const events = someEvents(4);
    const noise = Array.from({ length: 100 }, (_, at) => Math.sin(at).toString(36)).join("");
    const { refused } = await sink.send([...events, eventOf("noisy", { noise })], sending());
    expect(refused).toEqual([{ index: 4, reason: "answered INVALID_RECORD" }]);
    expect(asked).toBeGreaterThan(1);
    await arrived(events);
  });

  test.each(["cut-before", "cut-after"] as const)(
    "after a connection that was %s, the second attempt completes the batch",
    async (is) => {
      const sink = await openBehind({ fault: first({ is }) });
      const events = someEvents(1);
      expect(await failureOf(sink.send(events, sending()))).toMatchObject({
        code: "ENDPOINT_UNREACHABLE",
        disposition: "retry",
      });
      expect(await sink.send(events, sending())).toEqual(STORED);
      const copies = is === "cut-before" ? 1 : 2;
      await vi.waitFor(async () => expect(await arrived(events)).toHaveLength(copies));
    },
  );

  test("a broker that does not answer acknowledges nothing, and an abort ends the attempt with its reason", async () => {
    const slow = await openBehind({ fault: () => ({ is: "silence" }) }, { timeoutMs: 300 });
    expect(await failureOf(slow.send(someEvents(1), sending()))).toMatchObject({ code: "ENDPOINT_TIMEOUT" });
    const controller = new AbortController();
    const reason = new Error("the service stops");
    const stopped = await openBehind({
      fault() {
        controller.abort(reason);
        return { is: "silence" };
      },
    });
    await expect(stopped.send(someEvents(1), sending({ signal: controller.signal }))).rejects.toBe(reason);
  });

  test("a topic that does not exist is a mistake of the settings", async () => {
    const sink = await openBehind({ topic: { error: 3 } });
    expect(await failureOf(sink.send(someEvents(1), sending()))).toMatchObject({
      disposition: "give-up",
      message: expect.stringContaining("answered UNKNOWN_TOPIC_OR_PARTITION"),
    });
  });

  test.each(["169.254.169.254:80", "metadata.example:80"])(
    "a broker that advertises %s is not followed",
    async (leader) => {
      const network = {
        lookup: scriptedLookup(["127.0.0.1"], ["169.254.169.254"]),
        allowPrivateNetworks: true,
      };
      const sink = await openBehind({ topic: { leader } }, { network });
      expect(await failureOf(sink.send(someEvents(1), sending()))).toMatchObject({ code: "ADDRESS_REFUSED" });
    },
  );

  test("the next broker is asked if the first one does not answer", async () => {
    const events = someEvents(3);
    expect(await openAt(["127.0.0.1:1", ...brokers]).send(events, sending())).toEqual(STORED);
    expect(await failureOf(openAt(["127.0.0.1:1"]).send(events, sending()))).toMatchObject({
      message: "no answer from 127.0.0.1:1 (ECONNREFUSED)",
    });
  });
});
