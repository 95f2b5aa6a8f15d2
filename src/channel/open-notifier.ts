import type { Clock } from "../lib/clock.ts";
import { HOUR_MS } from "../lib/units.ts";
import { createAlertmanagerNotifier } from "./alertmanager.ts";
import type { ChannelConfig } from "./channel-config.ts";
import { createDiscordNotifier } from "./discord.ts";
import { createEmailNotifier } from "./email.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";
import { createOpsgenieNotifier } from "./opsgenie.ts";
import { createPagerDutyNotifier } from "./pagerduty.ts";
import { createSlackNotifier } from "./slack.ts";
import { createSlackBotNotifier } from "./slack-bot.ts";
import { createTeamsNotifier } from "./teams.ts";
import { createTerminalNotifier, type TerminalStream } from "./terminal.ts";
import { createWebhookNotifier } from "./webhook.ts";

/** What every channel of a process has in common. */
export interface SharedSurroundings {
  readonly terminal: TerminalStream;
  readonly clock: Clock;
  /** For all; a channel's own `allowPrivateNetworks` comes before. */
  readonly network: NetworkPolicy;
}

function toNetwork(config: ChannelConfig, network: NetworkPolicy): NetworkPolicy {
  const own = "allowPrivateNetworks" in config ? config.allowPrivateNetworks : undefined;
  return own === undefined ? network : { ...network, allowPrivateNetworks: own };
}

/**
 * Opens a configured channel; connects nowhere yet.
 * @throws {UsageError} listing every mistake of its addresses and secrets
 */
export function openNotifier(config: ChannelConfig, shared: SharedSurroundings): Notifier {
  const network = toNetwork(config, shared.network);
  const options = { name: config.name, clock: shared.clock, network };
  switch (config.kind) {
    case "terminal":
      return createTerminalNotifier({ name: config.name, stream: shared.terminal });
    case "webhook":
      return createWebhookNotifier({ ...options, url: config.url, secrets: config.secrets });
    case "slack":
      return createSlackNotifier({ ...options, url: config.url });
    case "pagerduty":
      return createPagerDutyNotifier({ ...options, routingKey: config.routingKey, url: config.url });
    case "teams":
      return createTeamsNotifier({ ...options, url: config.url });
    case "discord":
      return createDiscordNotifier({ ...options, url: config.url });
    case "slack-bot": {
      const { token, channel, url } = config;
      return createSlackBotNotifier({ ...options, token, channel, url });
    }
    case "alertmanager": {
      const { url, authorization, labels, firingForHours } = config;
      const firingForMs = firingForHours === undefined ? undefined : firingForHours * HOUR_MS;
      return createAlertmanagerNotifier({ ...options, url, authorization, labels, firingForMs });
    }
    case "opsgenie":
      return createOpsgenieNotifier({ ...options, apiKey: config.apiKey, url: config.url });
    case "email": {
      const { host, port, tls, login, from, to } = config;
      return createEmailNotifier({ ...options, host, port, tls, login, from, to });
    }
    default:
      return config satisfies never;
  }
}
