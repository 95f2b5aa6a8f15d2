import { expect, test } from "vitest";
import {
  readPosted,
  toAlertmanagerAlerts,
  toPostedReference,
} from "#delivery/receivers/channels/alertmanager/alertmanager.ts";
import { toDiscordMessage } from "#delivery/receivers/channels/discord/discord.ts";
import { toEmailMessage } from "#delivery/receivers/channels/email/email.ts";
import { toGoogleChatMessage } from "#delivery/receivers/channels/google-chat/google-chat.ts";
import { toJiraRequests } from "#delivery/receivers/channels/jira-service-management/jira-service-management.ts";
import { toMattermostPost } from "#delivery/receivers/channels/mattermost/mattermost.ts";
import { toNtfyNotification } from "#delivery/receivers/channels/ntfy/ntfy.ts";
import { toOpsgenieRequests } from "#delivery/receivers/channels/opsgenie/opsgenie.ts";
import { toPagerDutyEvent } from "#delivery/receivers/channels/pagerduty/pagerduty.ts";
import { toPushoverMessage } from "#delivery/receivers/channels/pushover/pushover.ts";
import { toSlackMessage } from "#delivery/receivers/channels/slack/slack.ts";
import { toTeamsMessage } from "#delivery/receivers/channels/teams/teams.ts";
import { toTelegramText } from "#delivery/receivers/channels/telegram/telegram.ts";
import { renderTerminal } from "#delivery/receivers/channels/terminal/render-terminal.ts";
import { paintPlain } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { toWebhookBodies } from "#delivery/receivers/channels/webhook/webhook-body.ts";
import { buildDigest } from "#delivery/rules/digest-message.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { capabilitiesOf } from "../support/capabilities.ts";
import { messageOf } from "../support/messages.ts";
import { NOW } from "../support/receiver.ts";

const ZONE = { zoneName: "shop", zoneLabels: { team: "edge" } } as const;
const RENDERERS: Readonly<Record<string, (message: AlertMessage) => unknown>> = {
  terminal: (message) => renderTerminal(message, { columns: 200, paint: paintPlain }),
  webhook: (message) => toWebhookBodies(message, NOW).first,
  slack: toSlackMessage,
  pagerduty: toPagerDutyEvent,
  teams: toTeamsMessage,
  discord: toDiscordMessage,
  alertmanager: (message) => toAlertmanagerAlerts(message, { atMs: NOW, posted: null, firingForMs: 1 }),
  opsgenie: toOpsgenieRequests,
  "jira-service-management": toJiraRequests,
  mattermost: toMattermostPost,
  "google-chat": toGoogleChatMessage,
  telegram: toTelegramText,
  ntfy: toNtfyNotification,
  pushover: toPushoverMessage,
  email: (message) => toEmailMessage(message, "longwatch.example"),
};

test.each(Object.entries(RENDERERS))("a %s message names the zone", (_kind, render) => {
  const text = (message: AlertMessage) => JSON.stringify(render(message));
  expect(text(messageOf({ ...ZONE, headline: "much more than usual" }))).toContain("shop");
  expect(text(messageOf({ ...ZONE, kind: "self", ruleId: null, headline: "late" }))).toContain("shop");
  expect(text(messageOf({ headline: "much more than usual" }))).not.toContain("shop");
});

test("a digest names the zone of every alert", () => {
  const messages = [messageOf(ZONE), messageOf({ zoneId: 102, dedupeKey: "other" })];
  const digest = buildDigest(messages, "key", capabilitiesOf("slack").rate);
  expect(renderTerminal(digest, { columns: 100, paint: paintPlain })).toContain("zone 101 (shop) · firing");
  expect(digest.digest?.[1]).not.toHaveProperty("zoneName");
});

test("PagerDuty, Opsgenie and the webhook carry the zone's labels", () => {
  const message = messageOf(ZONE);
  expect(toPagerDutyEvent(message)).toMatchObject({
    payload: { source: "zone 101 (shop)", custom_details: { zone_labels: { team: "edge" } } },
  });
  expect(toOpsgenieRequests(message)[0]?.body["details"]).toMatchObject({
    zoneName: "shop",
    zone_team: "edge",
  });
  expect(JSON.parse(toWebhookBodies(message, NOW).first).data).toMatchObject(ZONE);
});

test("Alertmanager gets the zone's labels, and an alert whose zone has new labels ends under the old ones", () => {
  const options = { atMs: NOW, firingForMs: 60_000 };
  const before = messageOf(ZONE);
  const [first] = toAlertmanagerAlerts(before, { ...options, posted: null });
  expect(first).toMatchObject({
    labels: { team: "edge", zone_id: "101" },
    annotations: { zone_name: "shop" },
  });
  const posted = readPosted(toPostedReference(before));
  expect(posted).toEqual({ posted: "critical", postedLabels: { team: "edge" } });
  expect(toAlertmanagerAlerts(before, { ...options, ...posted })).toHaveLength(1);
  const after = messageOf({ ...ZONE, zoneLabels: { team: "shop" }, reason: "repeat" });
  const [ended, firing, ...more] = toAlertmanagerAlerts(after, { ...options, ...posted });
  expect(more).toEqual([]);
  expect(ended).toMatchObject({ labels: { team: "edge" }, endsAt: new Date(NOW).toISOString() });
  expect(firing).toMatchObject({ labels: { team: "shop" }, endsAt: new Date(NOW + 60_000).toISOString() });
  const over = messageOf({ ...ZONE, zoneLabels: {}, state: "resolved", reason: "resolved", endedAt: NOW });
  expect(toAlertmanagerAlerts(over, { ...options, ...posted })[0]?.labels).toMatchObject({ team: "edge" });
  for (const odd of ["critical", "critical {", 'critical {"a":1}', "x {}", null])
    expect(readPosted(odd).postedLabels).toEqual({});
});
