import { channelFields } from "#config/file/channel-entry.ts";
import type { EntryField } from "#config/file/entry-fields.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { ChannelKind } from "#model/kinds.ts";
import { toAlertmanagerAlerts } from "#stages/delivery/channels/alertmanager/alertmanager-alerts.ts";
import { toDiscordMessage } from "#stages/delivery/channels/discord/discord-message.ts";
import { toEmailMessage } from "#stages/delivery/channels/email/email-message.ts";
import { toJiraRequests } from "#stages/delivery/channels/jira-service-management/jira-service-management.ts";
import {
  type OpsgenieRequest,
  toOpsgenieRequests,
} from "#stages/delivery/channels/opsgenie/opsgenie-requests.ts";
import { toPagerDutyEvent } from "#stages/delivery/channels/pagerduty/pagerduty-event.ts";
import { CHANNELS } from "#stages/delivery/channels/registry.ts";
import type { SlackMessage } from "#stages/delivery/channels/slack/slack-block.ts";
import { toSlackMessage, toWholeSlackMessage } from "#stages/delivery/channels/slack/slack-blocks.ts";
import { toTeamsMessage } from "#stages/delivery/channels/teams/teams-card.ts";
import { renderTerminal } from "#stages/delivery/channels/terminal/render-terminal.ts";
import { paintPlain } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { toWebhookBodies } from "#stages/delivery/channels/webhook/webhook-body.ts";
import { messageOf, verdictMessage } from "./messages.ts";
import { NOW } from "./receiver.ts";

/** Few values, so that a capture is short; the golden files have all of them. */
const { ips, paths } = messageOf().top;
const top = {
  ips: ips.slice(0, 2),
  asns: [],
  countries: [],
  paths: paths.slice(0, 1),
  userAgents: [],
  ja4s: [],
};

/** One alert as three transitions: its first message, the recommendation that came later, its end. */
const STORY: Readonly<Record<string, AlertMessage>> = {
  first: verdictMessage({ top, advice: { state: "pending", text: null, reason: null } }),
  advice: messageOf({ top, reason: "advice", transition: 2 }),
  resolved: messageOf({
    top,
    reason: "resolved",
    transition: 3,
    state: "resolved",
    endedAt: NOW + 16 * 60_000,
  }),
};

const json = (value: unknown) => JSON.stringify(value, null, 2);

function readSlack({ blocks }: SlackMessage): string {
  return blocks
    .map((block) => {
      if ("elements" in block) return block.elements.map(({ text }) => text).join("\n");
      if ("fields" in block) return block.fields.map(({ text }) => text).join("\n");
      return block.text.text;
    })
    .join("\n\n");
}

function readTeams(message: AlertMessage): string {
  const { body, actions = [] } = toTeamsMessage(message).attachments[0].content;
  const lines = body.map(({ inlines }) => inlines.map(({ text }) => text).join(""));
  return [...lines, ...actions.map(({ title, url }) => `[${title}] ${url}`)].join("\n");
}

function readDiscord(message: AlertMessage): string {
  const [embed] = toDiscordMessage(message).embeds ?? [];
  if (embed === undefined) throw new Error("no embed");
  const fields = embed.fields.map(({ name, value }) => `${name}\n${value}`);
  return [embed.title, embed.description, ...fields].join("\n\n");
}

function readEmail(message: AlertMessage): string {
  const mail = toEmailMessage(message, "longwatch.example");
  const thread = mail.inReplyTo === undefined ? [] : [`In-Reply-To: ${mail.inReplyTo}`];
  const head = [
    `Subject: ${mail.subject}`,
    `Message-ID: ${mail.messageId}`,
    ...thread,
    `Priority: ${mail.priority}`,
  ];
  return `${head.join("\n")}\n\n${mail.text.trimEnd()}`;
}

function readPagerDuty(message: AlertMessage): string {
  const event = toPagerDutyEvent(message);
  return json({ routing_key: "...", ...event });
}

function readOpsgenie(requests: readonly OpsgenieRequest[]): string {
  return requests
    .map(({ method, path, body }) => {
      const fields = Object.entries(body).filter(([name]) => !["description", "note"].includes(name));
      const text = [body["description"], body["note"]].filter((one) => typeof one === "string").join("\n");
      return `${method} ${path}\n${json(Object.fromEntries(fields))}\n\n${text}`;
    })
    .join("\n\n");
}

function readWebhook(message: AlertMessage): string {
  const { data, ...envelope } = JSON.parse(toWebhookBodies(message, NOW).first);
  const {
    alertId,
    dedupeKey,
    transition,
    reason,
    state,
    severity,
    zoneId,
    ruleId,
    count,
    usual,
    advice,
    links,
  } = data;
  const fields = {
    alertId,
    dedupeKey,
    transition,
    reason,
    state,
    severity,
    zoneId,
    ruleId,
    count,
    usual,
    advice,
    links,
  };
  return json({ ...envelope, data: { ...fields, "...": "" } });
}

const READERS: Readonly<Record<ChannelKind, (message: AlertMessage) => string>> = {
  terminal: (message) => renderTerminal(message, { columns: 80, paint: paintPlain }).trimEnd(),
  webhook: readWebhook,
  slack: (message) => readSlack(toSlackMessage(message)),
  pagerduty: readPagerDuty,
  teams: readTeams,
  discord: readDiscord,
  "slack-bot": (message) => readSlack(toWholeSlackMessage(message)),
  alertmanager: (message) =>
    json(toAlertmanagerAlerts(message, { atMs: NOW, posted: null, firingForMs: 86_400_000 })),
  opsgenie: (message) => readOpsgenie(toOpsgenieRequests(message)),
  "jira-service-management": (message) => readOpsgenie(toJiraRequests(message)),
  email: readEmail,
};

/** Returns the readable text of a transition, fenced and without the markup around it. */
function captureOf(kind: string, transition: string): string {
  const [read, message] = [READERS[kind as ChannelKind], STORY[transition]];
  if (!KINDS.includes(kind as ChannelKind) || message === undefined)
    throw new Error(`no capture of ${kind} ${transition}`);
  const text = read(message);
  const fence = "`".repeat(Math.max(3, ...(text.match(/`+/g) ?? []).map((run) => run.length + 1)));
  return `${fence}text\n${text}\n${fence}`;
}

/** The settings of a kind, from the schema that the file is read with. */
function settingsOf(kind: string): string {
  const fields = channelFields.get(kind);
  if (fields === undefined) throw new Error(`no kind ${kind}`);
  if (fields.length === 0) return "No settings besides `kind`.";
  const named = (isRequired: boolean) =>
    fields
      .filter((field) => field.isRequired === isRequired)
      .map(nameField)
      .join(", ");
  return `Needed: ${named(true)}. Optional: ${named(false)}.`;
}

function nameField({ key, secret, fields }: EntryField): string {
  if (fields !== null) return `\`${key}\` (${fields.map(nameField).join(", ")})`;
  if (secret === "no") return `\`${key}\``;
  return `${nameSecret(key)}${secret === "many" ? " (lists)" : ""}`;
}

const nameSecret = (key: string) => `\`${key}_file\` or \`${key}_env\``;

/** Every kind there is, in the order of the registry. */
export const KINDS: readonly ChannelKind[] = CHANNELS.map(({ kind }) => kind);

const CAPTURE = /<!-- capture ([a-z-]+) ([a-z]+) -->\n[\s\S]*?<!-- \/capture -->/g;
const SETTINGS = /<!-- settings ([a-z-]+) -->\n[\s\S]*?<!-- \/settings -->/g;

/** The document with everything between its markers made anew. */
export function fillDocument(text: string): string {
  return text
    .replace(CAPTURE, (_, kind: string, transition: string) => {
      return `<!-- capture ${kind} ${transition} -->\n\n${captureOf(kind, transition)}\n\n<!-- /capture -->`;
    })
    .replace(SETTINGS, (_, kind: string) => {
      return `<!-- settings ${kind} -->\n\n${settingsOf(kind)}\n\n<!-- /settings -->`;
    });
}

/** Returns the shown transitions as `kind transition`. */
export const shownIn = (text: string) =>
  [...text.matchAll(CAPTURE)].map(([, kind, transition]) => `${kind} ${transition}`);
