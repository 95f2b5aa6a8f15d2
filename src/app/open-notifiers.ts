import type { Notifier } from "../channel/notifier.ts";
import { createSlackNotifier } from "../channel/slack.ts";
import { createTerminalNotifier, type TerminalStream } from "../channel/terminal.ts";
import { createWebhookNotifier } from "../channel/webhook.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Metrics } from "../http/metrics.ts";
import { measureNotifier } from "./measure-notifier.ts";

/** Every channel that is configured, by name; the terminal always is. */
export function openNotifiers(
  { webhook, slack, allowPrivate }: Config["channels"],
  { terminal, clock, metrics }: { terminal: TerminalStream; clock: Clock; metrics: Metrics },
): ReadonlyMap<string, Notifier> {
  const shared = { clock, network: { allowPrivateNetworks: allowPrivate } };
  const notifiers = [createTerminalNotifier({ name: "terminal", stream: terminal })];
  if (webhook !== null) {
    notifiers.push(
      createWebhookNotifier({ name: "webhook", url: webhook.url, secrets: [webhook.secret], ...shared }),
    );
  }
  if (slack !== null) notifiers.push(createSlackNotifier({ name: "slack", url: slack.url, ...shared }));
  return new Map(notifiers.map((notifier) => [notifier.name, measureNotifier(notifier, metrics)]));
}
