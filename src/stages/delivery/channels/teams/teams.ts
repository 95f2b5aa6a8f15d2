import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { openEndpoint } from "../../endpoint.ts";
import { POST_TIMEOUT_MS, post, sendParts } from "../../post.ts";
import { MEMBER_ROWS, TEAMS_MAX_BYTES, toTeamsMessage, toTeamsParts } from "./teams-card.ts";

const settings = {
  /** The URL of a flow that starts "when a Teams webhook request is received". Its query contains the signature. */
  url: secretText,
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

function renderTeams(message: AlertMessage) {
  return [toTeamsMessage(message), ...toTeamsParts(message)];
}

/**
 * Returns whether Teams has the card: a flow answers 202, a connector 200 with `1` or nothing. A connector also answers
 * 200 if it could not deliver, with a text that names the status.
 */
function confirms({ status, body }: { readonly status: number; readonly body: string }): boolean | number {
  if (status === 202 || ["", "1"].includes(body.trim())) return true;
  return Number(/HTTP error (\d{3})\b/.exec(body)?.[1] ?? Number.NaN) || false;
}

/**
 * Sends to Microsoft Teams through Workflows. A flow cannot edit its card, so every transition is a new card. The flow
 * answers 202 before the card is shown. Later failures, for example after the flow's owner has left, are not reported
 * to Longwatch.
 * @throws {UsageError} for a bad URL
 */
function createSender(options: Options): Notifier["send"] {
  const endpoint = openEndpoint(options.name, options.url, options.network ?? {});
  return async (message, sending) => {
    const parts = renderTeams(message);
    return sendParts(parts.length, sending, async (index) => {
      await post(endpoint, {
        headers: {},
        body: JSON.stringify(parts[index]),
        timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
        clock: options.clock,
        signal: sending.signal,
        confirms,
      });
      return null;
    });
  };
}

export const teams = defineChannel({
  kind: "teams",
  settings,
  example: { url: "https://flows.example/workflows/1?sig=example-signature" },
  capabilities: {
    rate: { perMinute: 20, digest: { in: "list", maxChars: 8_000, charsBeside: 2 } },
    longestPauseMs: 2 * 60_000,
    laterTransitions: "post-anew",
    showsAcknowledgements: false,
    renewAfterMs: null,
    limits: { message: { most: TEAMS_MAX_BYTES, unit: "bytes" }, memberRows: MEMBER_ROWS },
  },
  render: renderTeams,
  createSender,
});
