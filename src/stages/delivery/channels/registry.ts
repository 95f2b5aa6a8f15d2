import type { CHANNEL_KINDS } from "#model/kinds.ts";
import type { AnyChannel } from "../channel-definition.ts";
import { alertmanager } from "./alertmanager/alertmanager.ts";
import { discord } from "./discord/discord.ts";
import { email } from "./email/email.ts";
import { jiraServiceManagement } from "./jira-service-management/jira-service-management.ts";
import { opsgenie } from "./opsgenie/opsgenie.ts";
import { pagerduty } from "./pagerduty/pagerduty.ts";
import { slack } from "./slack/slack.ts";
import { slackBot } from "./slack-bot/slack-bot.ts";
import { teams } from "./teams/teams.ts";
import { terminal } from "./terminal/terminal.ts";
import { webhook } from "./webhook/webhook.ts";

type OfKinds<Kinds extends readonly string[]> = {
  readonly [At in keyof Kinds]: { readonly kind: Kinds[At] };
};

/** The definition of every kind of channel, in the order of `CHANNEL_KINDS`. */
export const CHANNELS = [
  terminal,
  webhook,
  slack,
  pagerduty,
  teams,
  discord,
  slackBot,
  alertmanager,
  opsgenie,
  jiraServiceManagement,
  email,
] as const satisfies OfKinds<typeof CHANNEL_KINDS>;

const definitions: ReadonlyMap<string, AnyChannel> = new Map(
  CHANNELS.map((definition) => [definition.kind, definition]),
);

/** Returns the definition of a kind of channel; undefined for an unknown kind. */
export function findChannel(kind: string | undefined): AnyChannel | undefined {
  return kind === undefined ? undefined : definitions.get(kind);
}
