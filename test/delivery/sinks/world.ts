import { onTestFinished } from "vitest";
import { azureMonitor } from "#delivery/receivers/sinks/azure-monitor.ts";
import { elastic } from "#delivery/receivers/sinks/elastic.ts";
import { loki } from "#delivery/receivers/sinks/loki.ts";
import { otlp } from "#delivery/receivers/sinks/otlp.ts";
import type { ForwardedEvent, Sink } from "#delivery/receivers/sinks/sink.ts";
import { splunk } from "#delivery/receivers/sinks/splunk.ts";
import { webhook } from "#delivery/receivers/sinks/webhook.ts";
import { createSecret } from "#lib/secret.ts";
import { DIMENSIONS, type Dimension } from "#model/kinds.ts";
import { startAzureReceiver } from "../../support/receivers/azure-receiver.ts";
import { startElasticReceiver } from "../../support/receivers/elastic-receiver.ts";
import { startLokiReceiver } from "../../support/receivers/loki-receiver.ts";
import { startOtlpReceiver } from "../../support/receivers/otlp-receiver.ts";
import type { Receiver } from "../../support/receivers/receiver.ts";
import { startSplunkReceiver } from "../../support/receivers/splunk-receiver.ts";
import { startWebhookReceiver } from "../../support/receivers/webhook-receiver.ts";

/** Must show up in no error and no reason. */
export const CANARY = "canaryZm9vYmFy";
export const SIGNING_SECRET = `whsec_${Buffer.from("a signing secret of 32 bytes ....").toString("base64")}`;
export const ZONE = 101;
export const HOUR = Date.UTC(2026, 10, 21, 14);

const common = { name: "siem", clock: Date.now, network: { allowPrivateNetworks: true } };

export const AZURE = {
  tenantId: "contoso.example",
  clientId: "11111111-2222-4333-8444-555555555555",
  ruleId: `dcr-${"0a".repeat(16)}`,
  stream: "Custom-Longwatch",
};

export interface OpenOptions {
  readonly timeoutMs?: number;
  /** Another credential than the receiver's. */
  readonly credential?: string;
}

interface KindOfSink {
  /** The largest request. */
  readonly maxBytes: number;
  /** The largest event, if it is smaller. */
  readonly maxEventBytes?: number;
  readonly receive: () => Promise<Receiver>;
  readonly open: (origin: string, options?: OpenOptions) => Sink;
}

/** The sinks that post, each with its receiver. */
export const POSTING = {
  splunk: {
    maxBytes: 1_000_000,
    receive: () => startSplunkReceiver({ token: CANARY }),
    open: (url, { credential = CANARY, timeoutMs = 5_000 } = {}) =>
      splunk.open({
        ...common,
        url,
        timeoutMs,
        token: createSecret(credential),
        source: "longwatch",
        sourcetype: "longwatch:event",
        acknowledge: false,
      }),
  },
  elastic: {
    maxBytes: 5_000_000,
    receive: () => startElasticReceiver({ authorization: `ApiKey ${CANARY}` }),
    open: (url, { credential = CANARY, timeoutMs = 5_000 } = {}) =>
      elastic.open({ ...common, url, timeoutMs, index: "events", apiKey: createSecret(credential) }),
  },
  otlp: {
    maxBytes: 4_000_000,
    receive: () => startOtlpReceiver({ authorization: `Bearer ${CANARY}` }),
    open: (url, { credential = CANARY, timeoutMs = 5_000 } = {}) =>
      otlp.open({ ...common, url, timeoutMs, authorization: createSecret(`Bearer ${credential}`) }),
  },
  loki: {
    maxBytes: 1_000_000,
    receive: () => startLokiReceiver({ authorization: `Basic ${CANARY}` }),
    open: (url, { credential = CANARY, timeoutMs = 5_000 } = {}) =>
      loki.open({
        ...common,
        url,
        timeoutMs,
        authorization: createSecret(`Basic ${credential}`),
        structuredMetadata: true,
      }),
  },
  "azure-monitor": {
    maxBytes: 999_000,
    maxEventBytes: 66_560,
    receive: () => startAzureReceiver({ ...AZURE, clientSecret: CANARY, tokenPrefix: CANARY }),
    open: (url, { credential = CANARY, timeoutMs = 5_000 } = {}) =>
      azureMonitor.open({
        ...common,
        ...AZURE,
        url,
        timeoutMs,
        authority: url,
        audience: "https://monitor.azure.com/",
        clientSecret: createSecret(credential),
      }),
  },
  webhook: {
    maxBytes: 1_000_000,
    receive: () => startWebhookReceiver({ secret: SIGNING_SECRET }),
    open: (url, { credential, timeoutMs = 5_000 } = {}) =>
      webhook.open({
        ...common,
        timeoutMs,
        url: createSecret(`${url}/${CANARY}`),
        secrets: [
          createSecret(
            credential === undefined
              ? SIGNING_SECRET
              : `whsec_${Buffer.alloc(32, credential).toString("base64")}`,
          ),
        ],
      }),
  },
} as const satisfies Record<string, KindOfSink>;
export type PostingKind = keyof typeof POSTING;

/** Starts the receiver of a kind and opens a sink for it. */
export async function open(kind: PostingKind, options?: OpenOptions) {
  const { receive, open }: KindOfSink = POSTING[kind];
  return withReceiver(await receive(), (origin) => open(origin, options));
}

export function withReceiver(receiver: Receiver, openAt: (origin: string) => Sink) {
  onTestFinished(() => receiver.stop());
  return { receiver, sink: openAt(receiver.origin) };
}

const NO_FIELDS = Object.fromEntries(DIMENSIONS.map((name) => [name, ""])) as Record<Dimension, string>;

/** The body has the id that receivers without another one know the event by. */
export function eventOf(
  logId: string,
  more: object = {},
  over: Partial<Omit<ForwardedEvent, "fields">> & { fields?: Partial<ForwardedEvent["fields"]> } = {},
): ForwardedEvent {
  const body = JSON.stringify({ id: `${ZONE}-${logId}`, ...more });
  const event = { zoneId: ZONE, logId, occurredAt: HOUR + 1_234, body, isRevised: false, ...over };
  return { ...event, fields: { ...NO_FIELDS, ...over.fields } };
}

export function eventsOf(count: number): ForwardedEvent[] {
  return Array.from({ length: count }, (_, index) => eventOf(`e${index}`));
}

export const idsOf = (events: readonly ForwardedEvent[]) => events.map(({ logId }) => `${ZONE}-${logId}`);

export function sending(over: { batchId?: string; signal?: AbortSignal } = {}) {
  return { batchId: "batch-1", signal: new AbortController().signal, ...over };
}
