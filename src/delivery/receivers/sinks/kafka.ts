import net from "node:net";
import type { Connection, MessageRecord } from "@platformatic/kafka";
import { z } from "zod";
import { UsageError } from "#lib/errors.ts";
import type { Secret } from "#lib/secret.ts";
import { untilAborted } from "#lib/waiting.ts";
import { networkSettings, secretText } from "../channel-definition.ts";
import { DeliveryError } from "../delivery-error.ts";
import {
  findCertificateMistakes,
  findHostMistakes,
  findReadable,
  type NetworkPolicy,
  resolveHost,
  toTlsOptions,
} from "../endpoint.ts";
import { POST_TIMEOUT_MS, toUnreachable, withinTime } from "../post.ts";
import {
  type BatchAnswer,
  defineSink,
  type ForwardedEvent,
  type PartAnswer,
  splitBatch,
  toEventId,
  toSingleLine,
} from "./sink.ts";

const BROKER_RULE = "must be host:port, such as kafka.example.com:9093";
const TOPIC_RULE = "must be 1 to 249 letters, digits and the characters . _ -";
/** What a record takes besides its key and value, at most. */
const RECORD_BYTES = 64;
/** The code of acks=all. */
const ALL_REPLICAS = -1;
const MECHANISMS = {
  plain: "PLAIN",
  "scram-sha-256": "SCRAM-SHA-256",
  "scram-sha-512": "SCRAM-SHA-512",
} as const;

/**
 * Sends events to a Kafka topic. The key is the event's id. It chooses the partition as Kafka's own producer does, so a
 * revised event follows the first one. A lost answer leads to a second message with the same key.
 *
 * The library's producer connects to whatever address a broker advertises. Therefore the library is used below its
 * producer: each host is resolved and checked here, and the connection goes to the checked address.
 */
export const kafka = defineSink({
  kind: "kafka",
  acknowledgedWhen: "all in-sync replicas of its partition have it (acks=all)",
  settings: {
    brokers: z
      .array(z.string(BROKER_RULE).regex(/^(?:[\w.-]{1,253}|\[[\da-fA-F:.]{2,45}\]):\d{1,5}$/, BROKER_RULE))
      .min(1)
      .max(20),
    topic: z.string(TOPIC_RULE).regex(/^(?!\.{1,2}$)[\w.-]{1,249}$/, TOPIC_RULE),
    /** `false` is without encryption: private networks only. */
    tls: z.boolean().default(true),
    login: z
      .strictObject({
        mechanism: z.enum(["plain", "scram-sha-256", "scram-sha-512"]).default("scram-sha-512"),
        user: z.string().min(1),
        password: secretText,
      })
      .optional(),
    /** A certificate and its private key in PEM, by which the brokers know this client. */
    clientCertificate: secretText.optional(),
    /** The topic's `max.message.bytes`, which also limits the messages that one request brings to a partition. */
    maxMessageBytes: z.int().min(1_000).max(100_000_000).default(1_000_000),
    ...networkSettings,
  },
  example: { brokers: ["kafka.example:9093"], topic: "waf-events" },
  open(options) {
    const { name, topic, network = {}, timeoutMs = POST_TIMEOUT_MS } = options;
    const brokers = options.brokers.map(toBroker);
    const mistakes = [
      ...brokers.flatMap(({ host }) =>
        findHostMistakes(host, network).map((mistake) => `brokers: ${mistake}`),
      ),
      ...findCertificateMistakes(options.clientCertificate),
      ...findReadable("tls: false", !options.tls, network),
    ];
    if (mistakes.length > 0) throw new UsageError(mistakes.map((one) => `destination ${name}: ${one}`));
    return {
      count: null,
      async send(events, { signal }) {
        // Loaded for the first batch: most processes send none.
        const library = await import("@platformatic/kafka");
        const cluster = openCluster(library, { ...options, network, timeoutMs }, signal);
        try {
          const { produce, leaders } = await readTopic(library, cluster, { brokers, topic });
          const records = events.map((event) => toRecord(event, topic, leaders.length, library));
          const groups = [...Map.groupBy(records.keys(), (at) => records[at]?.partition ?? 0)];
          const sendGroup = (partition: number, positions: readonly number[]) => {
            const own = positions.flatMap((at) => records[at] ?? []);
            return splitBatch({
              sizes: own.map(({ key, value }) => key.length + value.length + RECORD_BYTES),
              maxBytes: options.maxMessageBytes,
              send: (part) => {
                const some = part.flatMap((at) => own[at] ?? []);
                return cluster.call(leaders[partition] ?? null, (connection) =>
                  produce
                    .async(connection, ALL_REPLICAS, timeoutMs, some, { compression: "gzip" })
                    .then((): PartAnswer => ({ is: "stored" }), toPartAnswer),
                );
              },
            });
          };
          const answers = await Promise.allSettled(groups.map((group) => sendGroup(...group)));
          return mergeAnswers(
            groups.map(([, positions]) => positions),
            answers,
          );
        } finally {
          cluster.close();
        }
      },
    };
  },
});

interface Broker {
  readonly host: string;
  readonly port: number;
}

function toBroker(text: string): Broker {
  const colon = text.lastIndexOf(":");
  return { host: text.slice(0, colon).replace(/^\[(.*)\]$/, "$1"), port: Number(text.slice(colon + 1)) };
}

type Library = typeof import("@platformatic/kafka");

interface ConnectionSettings {
  readonly network: NetworkPolicy;
  readonly tls: boolean;
  readonly clientCertificate?: Secret | undefined;
  readonly login?:
    | { readonly mechanism: keyof typeof MECHANISMS; readonly user: string; readonly password: Secret }
    | undefined;
  readonly timeoutMs: number;
}

/** Opens connections for one batch. None is kept, so that the address of each is checked. */
function openCluster(
  { Connection }: Library,
  { network, tls, clientCertificate, login, timeoutMs }: ConnectionSettings,
  signal: AbortSignal,
) {
  const opened = new Map<string, { readonly connection: Connection; readonly ready: Promise<unknown> }>();
  const inTime = <Result>(host: string, run: (until: AbortSignal) => Promise<Result>) =>
    withinTime({ host, timeoutMs, signal }, (until) => untilAborted(run(until), until), toFailure);

  function open({ host, port }: Broker, address: string) {
    const connection = new Connection("longwatch", {
      requestTimeout: timeoutMs,
      connectTimeout: timeoutMs,
      ...(tls ? { tls: toTlsOptions(network, clientCertificate) } : {}),
      ...(net.isIP(host) === 0 ? { tlsServerName: host } : {}),
      ...(login === undefined
        ? {}
        : {
            sasl: {
              mechanism: MECHANISMS[login.mechanism],
              username: login.user,
              password: login.password.reveal(),
            },
          }),
    });
    // The caller of the failed step gets the error, too.
    connection.on("error", () => undefined);
    const ready = inTime(address, async () => {
      const checked = await resolveHost(host, network);
      signal.throwIfAborted();
      await connection.connect(checked, port);
    });
    opened.set(address, { connection, ready });
    return { connection, ready };
  }

  return {
    /** Calls a broker. @throws {DeliveryError} */
    async call<Result>(
      broker: Broker | null,
      ask: (connection: Connection) => Promise<Result>,
    ): Promise<Result> {
      if (broker === null) throw unavailable("a partition has no leader");
      const address = `${broker.host}:${broker.port}`;
      const { connection, ready } = opened.get(address) ?? open(broker, address);
      await ready;
      return inTime(address, () => ask(connection));
    },
    close() {
      for (const { connection } of opened.values()) {
        connection.close().catch(() => undefined);
        connection.socket?.destroy();
      }
    },
  };
}

/** Asks the brokers in turn until one knows the topic. Returns the leader of each partition, null without one. */
async function readTopic(
  { apiVersionsV1, metadataV2, metadataV4, produceV7, produceV8 }: Library,
  cluster: ReturnType<typeof openCluster>,
  { brokers, topic }: { readonly brokers: readonly Broker[]; readonly topic: string },
) {
  let failure: unknown;
  for (const broker of brokers) {
    try {
      const { apiKeys } = await cluster.call(broker, (connection) =>
        apiVersionsV1.api.async(connection, "longwatch", "1"),
      );
      const newest = (key: number) => apiKeys.find(({ apiKey }) => apiKey === key)?.maxVersion ?? 0;
      // From version 4, a client can forbid the broker to create the topic.
      const metadata = newest(metadataV4.api.key) >= 4 ? metadataV4.api : metadataV2.api;
      const answer = await cluster.call(broker, (connection) =>
        metadata.async(connection, [topic], false).catch((thrown: unknown) => toKnownTopic(thrown)),
      );
      const nodes = new Map(answer.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }]));
      const partitions = answer.topics[0]?.partitions ?? [];
      const leaders = partitions
        .toSorted((one, other) => one.partitionIndex - other.partitionIndex)
        .map(({ leaderId }) => nodes.get(leaderId) ?? null);
      if (leaders.length === 0) throw unavailable(`${broker.host}:${broker.port} named no partition`);
      // From version 8, a broker names the messages that it refuses.
      return { leaders, produce: newest(produceV8.api.key) >= 8 ? produceV8.api : produceV7.api };
    } catch (thrown) {
      if (!(thrown instanceof DeliveryError) || thrown.disposition === "give-up") throw thrown;
      failure = thrown;
    }
  }
  throw failure;
}

type Metadata = Awaited<ReturnType<Library["metadataV4"]["api"]["async"]>>;

/** The library throws for a partition without a leader, too. */
function toKnownTopic(thrown: unknown): Metadata {
  const { response } = thrown as { readonly response?: Metadata };
  if (response?.topics?.[0]?.errorCode === 0) return response;
  throw thrown;
}

function toRecord(event: ForwardedEvent, topic: string, partitions: number, { murmur2 }: Library) {
  const key = Buffer.from(toEventId(event));
  return {
    topic,
    key,
    value: Buffer.from(toSingleLine(event.body)),
    partition: (murmur2(key) & 0x7fffffff) % partitions,
    timestamp: BigInt(Math.round(event.occurredAt)),
  } satisfies MessageRecord;
}

/** What the library says of a broker's error answer. */
interface BrokerError {
  readonly apiId?: string;
  readonly canRetry?: boolean;
  readonly serverErrorMessage?: string | null;
  readonly errors?: readonly BrokerError[];
  readonly cause?: unknown;
  readonly response?: {
    readonly responses?: readonly {
      readonly partitionResponses: readonly {
        readonly recordErrors: readonly { readonly batchIndex: number }[];
      }[];
    }[];
  };
}

/** Returns the innermost error that has a broker's code; null without one. */
function findBrokerError(thrown: unknown): BrokerError | null {
  if (typeof thrown !== "object" || thrown === null) return null;
  const error: BrokerError = thrown;
  if (error.apiId !== undefined) return error;
  return [...(error.errors ?? []), error.cause].map(findBrokerError).find((found) => found !== null) ?? null;
}

const TOO_LARGE = new Set(["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"]);
/** Codes that concern single messages. */
const REFUSED = new Set(["INVALID_RECORD", "INVALID_TIMESTAMP"]);

/** Returns what a broker's error means for the messages of a request. @throws the error if it means nothing for them */
function toPartAnswer(thrown: unknown): PartAnswer {
  const error = findBrokerError(thrown);
  const id = error?.apiId ?? "";
  if (TOO_LARGE.has(id)) return { is: "too-large" };
  if (!REFUSED.has(id)) throw thrown;
  const [answer] = (thrown as BrokerError).response?.responses ?? [];
  const indexes = answer?.partitionResponses[0]?.recordErrors.map(({ batchIndex }) => batchIndex) ?? [];
  return { is: "refused", reason: `answered ${id} ${error?.serverErrorMessage ?? ""}`, indexes };
}

/** Returns the failure of a step. Only codes are repeated: a broker's words may quote the request. */
function toFailure(thrown: unknown, host: string): DeliveryError {
  const error = findBrokerError(thrown);
  if (error?.apiId === undefined) {
    const { cause } = thrown as { readonly cause?: unknown };
    return cause instanceof Error ? toFailure(cause, host) : toUnreachable(thrown, host);
  }
  const text = `${host} answered ${error.apiId}`;
  // A topic that does not exist is called a passing state, because it may be new. Here a person has to make it.
  if (error.canRetry === true && error.apiId !== "UNKNOWN_TOPIC_OR_PARTITION") return unavailable(text);
  return new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text });
}

function unavailable(text: string): DeliveryError {
  return new DeliveryError({ code: "ENDPOINT_UNAVAILABLE", disposition: "retry", text });
}

/**
 * Returns the answer to a batch from those of its partitions. If one partition fails after others have answered, its events
 * are postponed.
 * @throws the failure if no partition has answered
 */
function mergeAnswers(
  groups: readonly (readonly number[])[],
  answers: readonly PromiseSettledResult<BatchAnswer>[],
): BatchAnswer {
  const failures = answers.flatMap((one): unknown[] => (one.status === "rejected" ? [one.reason] : []));
  const unknown = failures.find((failure) => !(failure instanceof DeliveryError));
  if (unknown !== undefined || (failures.length > 0 && failures.length === answers.length))
    throw unknown ?? failures[0];
  const refused: { index: number; reason: string }[] = [];
  const postponed: number[] = [];
  for (const [at, answer] of answers.entries()) {
    const positions = groups[at] ?? [];
    if (answer.status === "rejected") postponed.push(...positions);
    else {
      const { value } = answer;
      refused.push(...value.refused.map(({ index, reason }) => ({ index: positions[index] ?? 0, reason })));
      postponed.push(...value.postponed.map((index) => positions[index] ?? 0));
    }
  }
  return { refused, postponed, waitMs: null };
}
