/** All channels by kind. */

import { z } from "zod";
import type { Secret } from "#lib/secret.ts";
import type { CHANNEL_KINDS } from "#model/kinds.ts";
import { type AnyChannel, type Notifier, type SenderContext, toNetwork } from "../channel-definition.ts";
import { alertmanager } from "./alertmanager/alertmanager.ts";
import { discord } from "./discord/discord.ts";
import { email } from "./email/email.ts";
import { googleChat } from "./google-chat/google-chat.ts";
import { jiraServiceManagement } from "./jira-service-management/jira-service-management.ts";
import { mattermost } from "./mattermost/mattermost.ts";
import { ntfy } from "./ntfy/ntfy.ts";
import { opsgenie } from "./opsgenie/opsgenie.ts";
import { pagerduty } from "./pagerduty/pagerduty.ts";
import { pushover } from "./pushover/pushover.ts";
import { slack } from "./slack/slack.ts";
import { slackBot } from "./slack-bot/slack-bot.ts";
import { teams } from "./teams/teams.ts";
import { telegram } from "./telegram/telegram.ts";
import { type TerminalContext, terminal } from "./terminal/terminal.ts";
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
  mattermost,
  googleChat,
  telegram,
  ntfy,
  pushover,
] as const satisfies OfKinds<typeof CHANNEL_KINDS>;

const definitions: ReadonlyMap<string, AnyChannel> = new Map(
  CHANNELS.map((definition) => [definition.kind, definition]),
);

/** Returns the definition of a kind of channel; undefined for an unknown kind. */
export function findChannel(kind: string | undefined): AnyChannel | undefined {
  return kind === undefined ? undefined : definitions.get(kind);
}

type SchemasOf<Definitions extends readonly { readonly schema: unknown }[]> = {
  readonly [Index in keyof Definitions]: Definitions[Index]["schema"];
};

const schemas = CHANNELS.map(({ schema }) => schema) as unknown as SchemasOf<typeof CHANNELS>;

/**
 * One channel in a configuration file; `kind` selects the schema. Unknown fields are mistakes. Credentials, and
 * addresses that contain one, are parsed to Secret. Addresses are checked when the channel is opened.
 */
export const channelConfig = z.discriminatedUnion("kind", schemas);

export type ChannelConfig = z.infer<typeof channelConfig>;

/** Returns every credential of these channels or destinations, wherever it is in their configuration. */
export function secretsOf(configs: readonly object[]): readonly Secret[] {
  return configs.flatMap(findSecrets);
}

function findSecrets(value: unknown): Secret[] {
  if (typeof value !== "object" || value === null) return [];
  return "reveal" in value ? [value as Secret] : Object.values(value).flatMap(findSecrets);
}

/** The options that all channels of a process share. A channel's own settings override those of `network`. */
export type SharedContext = Required<Pick<SenderContext, "clock" | "network">> & TerminalContext;

/**
 * Opens a configured channel, which does not connect yet.
 * @throws {UsageError} listing every mistake of its addresses and secrets
 */
export function openNotifier(config: ChannelConfig, shared: SharedContext): Notifier {
  const definition = findChannel(config.kind);
  if (definition === undefined) throw new Error(`There is no kind of channel named ${config.kind}.`);
  const options = { ...config, ...shared, network: toNetwork(config, shared.network) };
  return definition.open(options);
}

/** The day on which Atlassian ends Opsgenie and its API (support.atlassian.com, "What happens when Opsgenie is turned off"). */
export const OPSGENIE_ENDS = "2027-04-05";

/** Returns the names of the channels that send to Opsgenie itself. A compatible service at another address goes on. */
export function listEnding(channels: readonly ChannelConfig[]): string[] {
  return channels
    .filter((one) => one.kind === "opsgenie" && (one.url === undefined || isOwn(new URL(one.url))))
    .map(({ name }) => name);
}

function isOwn({ hostname }: URL): boolean {
  return hostname === "opsgenie.com" || hostname.endsWith(".opsgenie.com");
}
