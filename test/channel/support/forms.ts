import { expect } from "vitest";
import type { z } from "zod";
import {
  MAX_BODY_BYTES as POST_BYTES,
  toAlertmanagerAlerts,
  toAlertmanagerBodies,
} from "../../../src/channel/alertmanager-alerts.ts";
import { toDiscordFile, toDiscordMessage } from "../../../src/channel/discord-message.ts";
import { toEmailMessage } from "../../../src/channel/email-message.ts";
import { toOpsgenieRequests } from "../../../src/channel/opsgenie-requests.ts";
import { toPagerDutyEvent } from "../../../src/channel/pagerduty-event.ts";
import { renderTerminal } from "../../../src/channel/render-terminal.ts";
import { SLACK_LIMITS } from "../../../src/channel/slack-block.ts";
import { toSlackMessage, toSlackParts, toWholeSlackMessage } from "../../../src/channel/slack-blocks.ts";
import { toTeamsMessage, toTeamsParts } from "../../../src/channel/teams-card.ts";
import { paintPlain } from "../../../src/channel/terminal-style.ts";
import { MAX_BODY_BYTES, toWebhookBodies } from "../../../src/channel/webhook-body.ts";
import type { AlertMessage } from "../../../src/model/alert-message.ts";
import { stringsOf } from "./characters.ts";
import { NOW } from "./receiver.ts";
import { alertmanagerRequest } from "./schemas/alertmanager.ts";
import { discordRequest } from "./schemas/discord.ts";
import { emailMessage } from "./schemas/email.ts";
import { opsgenieRequests } from "./schemas/opsgenie.ts";
import { pagerDutyRequest } from "./schemas/pagerduty.ts";
import { slackWords } from "./schemas/slack.ts";
import { teamsRequest } from "./schemas/teams.ts";

/** What a kind of channel makes of a message, and what its vendor asks of that. */
interface Form {
  /** Everything that a channel is sent for one transition. */
  readonly render: (message: AlertMessage) => readonly unknown[];
  readonly check: (body: unknown) => void;
}

const valid = (schema: z.ZodType) => (body: unknown) =>
  expect(schema.safeParse(body).error?.issues).toBeUndefined();
const below = (bytes: number) => (body: unknown) =>
  expect(Buffer.byteLength(String(body))).toBeLessThan(bytes);

function sizeOfBlocks(body: unknown): number {
  const { blocks } = slackWords.parse(body);
  return stringsOf(blocks).reduce((sum, text) => sum + Array.from(text).length, 0);
}
const validSlack = (body: unknown) => {
  valid(slackWords)(body);
  // Names and types of the blocks are counted too here, which the limit does not mean.
  expect(sizeOfBlocks(body)).toBeLessThan(SLACK_LIMITS.total + 1_500);
};

/** Every kind there is. */
export const FORMS: Readonly<Record<string, Form>> = {
  terminal: {
    render: (message) => [renderTerminal(message, { columns: 100, paint: paintPlain })],
    check: () => {},
  },
  webhook: {
    render: (message) => {
      const { first, following } = toWebhookBodies(message, NOW);
      return [first, ...following];
    },
    check: below(MAX_BODY_BYTES),
  },
  slack: { render: (message) => [toSlackMessage(message), ...toSlackParts(message)], check: validSlack },
  "slack-bot": {
    render: (message) => [toWholeSlackMessage(message), ...toSlackParts(message)],
    check: validSlack,
  },
  teams: {
    render: (message) => [toTeamsMessage(message), ...toTeamsParts(message)],
    check: valid(teamsRequest),
  },
  discord: {
    render: (message) => [toDiscordMessage(message), toDiscordFile(message) ?? ""],
    check: (body) => (typeof body === "string" ? below(10_000_000)(body) : valid(discordRequest)(body)),
  },
  email: { render: (message) => [toEmailMessage(message, "longwatch.example")], check: valid(emailMessage) },
  pagerduty: {
    render: (message) => [{ routing_key: "x".repeat(32), ...toPagerDutyEvent(message) }],
    check: valid(pagerDutyRequest),
  },
  opsgenie: { render: (message) => [toOpsgenieRequests(message)], check: valid(opsgenieRequests) },
  alertmanager: {
    render: (message) =>
      toAlertmanagerBodies(toAlertmanagerAlerts(message, { atMs: NOW, told: null, firingForMs: 86_400_000 })),
    check: (body) => {
      below(POST_BYTES + 1)(body);
      valid(alertmanagerRequest)(JSON.parse(String(body)));
    },
  },
};
