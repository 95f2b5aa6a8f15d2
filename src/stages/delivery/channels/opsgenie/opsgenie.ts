import { z } from "zod";
import { createSecret } from "#lib/secret.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { readReply } from "../../delivery-error.ts";
import { extendEndpoint, openEndpoint } from "../../endpoint.ts";
import { POST_TIMEOUT_MS, post, sendParts } from "../../post.ts";
import {
  MEMBER_ROWS,
  OPSGENIE_LIMITS,
  type OpsgenieRequest,
  toOpsgenieRequests,
} from "./opsgenie-requests.ts";

const settings = {
  /** The key of an API integration. */
  apiKey: secretText,
  /** The address without `/v2/alerts`. Default: Opsgenie's own. For the EU it is `https://api.eu.opsgenie.com`. */
  url: z.url().optional(),
  ...networkSettings,
};

/** "Request will be processed" */
const taken = z.object({ result: z.string() });

type Options = SenderOptions<typeof settings>;
type Render = (message: AlertMessage) => OpsgenieRequest[];

/**
 * Sends to Opsgenie's Alert API or a compatible one. The API answers 202 before it has processed a request. Because of
 * the alias, an alert that arrives twice is one alert.
 * @throws {UsageError} for a bad URL or key
 */
function createSender(options: Options, ownUrl: string, render: Render): Notifier["send"] {
  const { name, apiKey } = options;
  const mistakes = /^[\x21-\x7e]+$/.test(apiKey.reveal()) ? [] : ["apiKey: must be one word"];
  const endpoint = openEndpoint(name, createSecret(options.url ?? ownUrl), options.network ?? {}, mistakes);
  return async (message, sending) => {
    const requests = render(message);
    return sendParts(requests.length, sending, async (index) => {
      const request = requests[index];
      if (request === undefined) return null;
      const { method, path, byAlias, body } = request;
      await post(extendEndpoint(endpoint, path, byAlias ? { identifierType: "alias" } : {}), {
        method,
        headers: { authorization: `GenieKey ${apiKey.reveal()}` },
        body: JSON.stringify(body),
        timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
        clock: options.clock,
        signal: sending.signal,
        confirms: (reply) => readReply(reply.body, taken) !== null,
        secrets: [apiKey],
      });
      return null;
    });
  };
}

const channel = {
  settings,
  example: { apiKey: "example-key" },
  capabilities: {
    rate: { perMinute: 100, digest: null },
    longestPauseMs: 60_000,
    laterTransitions: "same-incident",
    showsAcknowledgements: true,
    renewAfterMs: null,
    limits: { message: { most: OPSGENIE_LIMITS.note, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
} as const;

/** Defines a channel for an API that takes Opsgenie's requests below its own address. */
export function defineAlertApi<Kind extends string>(kind: Kind, ownUrl: string, render: Render) {
  const create = (options: Options) => createSender(options, ownUrl, render);
  return defineChannel({ kind, ...channel, render, createSender: create });
}

export const opsgenie = defineAlertApi("opsgenie", "https://api.opsgenie.com", toOpsgenieRequests);
