import { z } from "zod";
import { createSecret, type Secret } from "#lib/secret.ts";
import { networkSettings, secretText } from "../channel-definition.ts";
import { DeliveryError, readReply } from "../delivery-error.ts";
import { type Endpoint, extendEndpoint, findUrlMistakes, openEndpoint } from "../endpoint.ts";
import { POST_TIMEOUT_MS, type PostRequest, post } from "../post.ts";
import { defineSink, type ForwardedEvent, postBatch, toEventId, toSingleLine } from "./sink.ts";

/** The limit of one call is 1 MB, compressed and uncompressed. Brackets are beside the events. */
const MAX_BYTES = 999_000;
/** Azure Monitor cuts a value of more than 64 KiB, which would leave half an event. One more is for the other members. */
const MAX_ROW_BYTES = 65 * 1_024;
/** A token is replaced this long before it ends. */
const RENEW_BEFORE_S = 300;

const tokenAnswer = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]+$/),
  expires_in: z.coerce.number().positive(),
});
const tokenRefusal = z.object({ error: z.string().optional(), error_description: z.string().optional() });

/**
 * Sends events to the Logs Ingestion API of Azure Monitor, from which Microsoft Sentinel reads. Its 204 means that the
 * pipeline has accepted the rows. What the transformation of the data collection rule does to them is not known here.
 */
export const azureMonitor = defineSink({
  kind: "azure-monitor",
  acknowledgedWhen: "Azure Monitor answers 204: it has accepted the row, and stores it some minutes later",
  settings: {
    /** The logs ingestion endpoint of the data collection endpoint, or of the rule. */
    url: z.url(),
    ruleId: z.string().regex(/^dcr-[0-9a-f]{32}$/, "must be the rule's immutable id, such as dcr-0a1b..."),
    stream: z
      .string()
      .regex(
        /^(?:Custom|Microsoft)-\w[\w-]{0,99}$/,
        "must be a stream of the rule, such as Custom-Longwatch",
      ),
    tenantId: z.string().regex(/^[\w.-]{1,253}$/, "must be a tenant's id or domain"),
    clientId: z.uuid(),
    clientSecret: secretText,
    authority: z.url().default("https://login.microsoftonline.com"),
    audience: z.url().default("https://monitor.azure.com"),
    ...networkSettings,
  },
  example: {
    url: "https://longwatch.westeurope-1.ingest.example",
    ruleId: `dcr-${"0".repeat(32)}`,
    stream: "Custom-Longwatch",
    tenantId: "contoso.example",
    clientId: "00000000-0000-4000-8000-000000000000",
    clientSecret: "example-secret",
  },
  open(options) {
    const { name, url, ruleId, stream, network = {}, clock, timeoutMs = POST_TIMEOUT_MS } = options;
    const mistakes = findUrlMistakes(options.authority, network.allowPrivateNetworks ?? false);
    const known = mistakes.map((mistake) => `authority: ${mistake}`);
    const base = openEndpoint(name, createSecret(url), network, known, "destination");
    const endpoint = extendEndpoint(base, `/dataCollectionRules/${ruleId}/streams/${stream}`, {
      "api-version": "2023-01-01",
    });
    const authority = openEndpoint(name, createSecret(options.authority), network, [], "destination");
    const authorize = createTokens(extendEndpoint(authority, `/${options.tenantId}/oauth2/v2.0/token`), {
      clientId: options.clientId,
      clientSecret: options.clientSecret,
      scope: `${options.audience.replace(/\/+$/, "")}/.default`,
      timeoutMs,
      clock,
    });
    return {
      count: null,
      send: (events, { signal }) =>
        postBatch(endpoint, events.map(toRow), {
          secrets: [options.clientSecret],
          maxBytes: MAX_BYTES,
          maxEventBytes: MAX_ROW_BYTES,
          toBody: (rows) => `[${rows.join()}]`,
          read: ({ status }) => (status === 204 ? { is: "stored" } : null),
          authorize,
          timeoutMs,
          clock,
          signal,
        }),
    };
  },
});

function toRow(event: ForwardedEvent): string {
  const row = JSON.stringify({
    TimeGenerated: new Date(event.occurredAt).toISOString(),
    LongwatchId: toEventId(event),
    Zone: event.zoneId,
    Rule: event.fields.ruleId.slice(0, 200).toWellFormed(),
    Action: event.fields.action.slice(0, 200).toWellFormed(),
  });
  return `${row.slice(0, -1)},"Event":${toSingleLine(event.body)}}`;
}

interface Client extends Pick<PostRequest, "timeoutMs" | "clock"> {
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly scope: string;
}

/**
 * Returns a function that returns the header `authorization` by OAuth 2.0 client credentials. It keeps a token until
 * shortly before the token ends, or until the token is refused, and asks once for all callers.
 */
function createTokens(endpoint: Endpoint, { clientId, clientSecret, scope, timeoutMs, clock }: Client) {
  let held: { readonly header: Secret; readonly renewAt: number } | null = null;
  let asking: ReturnType<typeof ask> | null = null;

  async function ask(signal: AbortSignal) {
    const askedAt = clock();
    const form = {
      grant_type: "client_credentials",
      client_id: clientId,
      client_secret: clientSecret.reveal(),
      scope,
    };
    const { status, body } = await post(endpoint, {
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams(form).toString(),
      secrets: [clientSecret],
      accepts: [400, 401],
      timeoutMs,
      clock,
      signal,
    });
    if (status >= 400) throw refusedClient(endpoint.host, status, body);
    const token = readReply(body, tokenAnswer);
    if (token === null) {
      const text = `${endpoint.host} answered ${status} without a token`;
      throw new DeliveryError({ code: "ENDPOINT_UNAVAILABLE", disposition: "retry", text });
    }
    const { access_token, expires_in } = token;
    const livesS = Math.max(expires_in - RENEW_BEFORE_S, expires_in / 2);
    return { header: createSecret(`Bearer ${access_token}`), renewAt: askedAt + livesS * 1_000 };
  }

  return async (refused: Secret | null, signal: AbortSignal): Promise<Secret> => {
    if (held !== null && held.header !== refused && clock() < held.renewAt) return held.header;
    asking ??= ask(signal).finally(() => {
      asking = null;
    });
    held = await asking;
    return held.header;
  };
}

/** The answer's text may repeat the request, so only its words of a fixed form are shown. */
function refusedClient(host: string, status: number, body: string | null): DeliveryError {
  const { error = "", error_description: description = "" } = readReply(body, tokenRefusal) ?? {};
  const words = [/^[a-z_]{1,40}$/.exec(error)?.[0], /\bAADSTS\d{3,9}\b/.exec(description)?.[0]];
  const said = words.filter((word) => word !== undefined).map((word) => `, ${word}`);
  const text = `${host} answered ${status}${said.join("")}: check tenant_id, client_id and client_secret`;
  return new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text });
}
