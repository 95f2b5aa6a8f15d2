import { expect } from "vitest";
import { z } from "zod";
import { MAX_BODY_BYTES as POST_BYTES } from "#delivery/receivers/channels/alertmanager/alertmanager.ts";
import { CHANNELS } from "#delivery/receivers/channels/registry.ts";
import { SLACK_LIMITS } from "#delivery/receivers/channels/slack/slack.ts";
import { MAX_BODY_BYTES } from "#delivery/receivers/channels/webhook/webhook-body.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { ChannelKind } from "#model/kinds.ts";
import { alertmanagerRequest } from "../channels/alertmanager/schema.ts";
import { discordRequest } from "../channels/discord/schema.ts";
import { emailMessage } from "../channels/email/schema.ts";
import { googleChatMessage } from "../channels/google-chat/schema.ts";
import { jiraRequests } from "../channels/jira-service-management/schema.ts";
import { mattermostPost, mattermostText } from "../channels/mattermost/schema.ts";
import { ntfyNotification } from "../channels/ntfy/schema.ts";
import { opsgenieRequests } from "../channels/opsgenie/schema.ts";
import { pagerDutyRequest } from "../channels/pagerduty/schema.ts";
import { pushoverMessage } from "../channels/pushover/schema.ts";
import { slackWords } from "../channels/slack/schema.ts";
import { teamsRequest } from "../channels/teams/schema.ts";
import { telegramFile, telegramText } from "../channels/telegram/schema.ts";
import { capabilitiesOf } from "./capabilities.ts";
import { stringsOf } from "./characters.ts";
import { NOW } from "./receiver.ts";

/** How a kind of channel renders a message, and its vendor's rules for the result. */
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

const CHECKS: Readonly<Record<ChannelKind, Form["check"]>> = {
  terminal: () => {},
  webhook: below(MAX_BODY_BYTES),
  slack: validSlack,
  "slack-bot": validSlack,
  teams: valid(teamsRequest),
  discord: (body) => (typeof body === "string" ? below(10_000_000)(body) : valid(discordRequest)(body)),
  email: valid(emailMessage),
  pagerduty: valid(pagerDutyRequest),
  opsgenie: valid(opsgenieRequests),
  "jira-service-management": valid(jiraRequests),
  mattermost: valid(z.union([mattermostPost, mattermostText])),
  "google-chat": valid(googleChatMessage),
  // The file is larger than any text of a message.
  telegram: (body) => (typeof body === "string" ? valid(telegramText)(body) : valid(telegramFile)(body)),
  ntfy: valid(ntfyNotification),
  pushover: valid(pushoverMessage),
  alertmanager: (body) => {
    below(POST_BYTES + 1)(body);
    valid(alertmanagerRequest)(JSON.parse(String(body)));
  },
};

/** These show the worst rules of an incident and the command that lists the others, and name no other rule. */
const NAMES_FEW = ["alertmanager", "ntfy", "pushover"];
/** How many of the rules of an incident a kind names. */
export const countNamed = (kind: string, rules: number) =>
  NAMES_FEW.includes(kind) ? capabilitiesOf(kind as ChannelKind).limits.memberRows : rules;

/** Every kind there is. */
export const FORMS: Readonly<Record<string, Form>> = Object.fromEntries(
  CHANNELS.map(({ kind, render }) => {
    const all = (message: AlertMessage) => render(message, NOW);
    // The schemas of Opsgenie and Jira are of all requests of one transition.
    const isWhole = kind === "opsgenie" || kind === "jira-service-management";
    return [kind, { render: isWhole ? (message) => [all(message)] : all, check: CHECKS[kind] }];
  }),
);
