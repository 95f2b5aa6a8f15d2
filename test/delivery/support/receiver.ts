import type { LookupFunction } from "node:net";
import type { Notifier, SendOptions } from "#delivery/receivers/channel-definition.ts";
import { alertmanager } from "#delivery/receivers/channels/alertmanager/alertmanager.ts";
import { discord } from "#delivery/receivers/channels/discord/discord.ts";
import { googleChat } from "#delivery/receivers/channels/google-chat/google-chat.ts";
import { jiraServiceManagement } from "#delivery/receivers/channels/jira-service-management/jira-service-management.ts";
import { mattermost } from "#delivery/receivers/channels/mattermost/mattermost.ts";
import { ntfy } from "#delivery/receivers/channels/ntfy/ntfy.ts";
import { opsgenie } from "#delivery/receivers/channels/opsgenie/opsgenie.ts";
import { pagerduty } from "#delivery/receivers/channels/pagerduty/pagerduty.ts";
import { pushover } from "#delivery/receivers/channels/pushover/pushover.ts";
import { slack } from "#delivery/receivers/channels/slack/slack.ts";
import { slackBot } from "#delivery/receivers/channels/slack-bot/slack-bot.ts";
import { teams } from "#delivery/receivers/channels/teams/teams.ts";
import { telegram } from "#delivery/receivers/channels/telegram/telegram.ts";
import { webhook } from "#delivery/receivers/channels/webhook/webhook.ts";
import { createSecret } from "#lib/secret.ts";
import { digest } from "#model/fingerprint.ts";

/** Must show up in no error, log line or row. */
export const CANARY = "xoxcanary-Zm9vYmFy";
export const SIGNING_SECRET = `whsec_${Buffer.from("a signing secret of 32 bytes ....").toString("base64")}`;

export const NOW = Date.UTC(2026, 10, 21, 14, 10);
const network = { allowPrivateNetworks: true };

export const CHANNEL_ID = "c".repeat(26);
export const POST_ID = "p".repeat(26);
export const ROUTING_KEY = `${CANARY}-0123456789abc`;

/** The channels that post, each pointed at `origin`, with the canary in path and query. */
export const POSTING: Readonly<Record<string, (origin: string, timeoutMs?: number) => Notifier>> = {
  webhook: (origin, timeoutMs = 20_000) =>
    webhook.open({
      name: "hook",
      url: createSecret(`${origin}/in/${CANARY}?token=${CANARY}`),
      secrets: [createSecret(SIGNING_SECRET)],
      clock: Date.now,
      network,
      timeoutMs,
    }),
  slack: (origin, timeoutMs = 20_000) =>
    slack.open({
      name: "chat",
      url: createSecret(`${origin}/services/${CANARY}?token=${CANARY}`),
      clock: Date.now,
      network,
      timeoutMs,
    }),
  pagerduty: (origin, timeoutMs = 20_000) =>
    pagerduty.open({
      name: "pager",
      routingKey: createSecret(ROUTING_KEY),
      url: `${origin}/v2/enqueue`,
      clock: Date.now,
      network,
      timeoutMs,
    }),
  teams: (origin, timeoutMs = 20_000) =>
    teams.open({
      name: "team",
      url: createSecret(`${origin}/workflows/${CANARY}/triggers/manual?sig=${CANARY}`),
      clock: Date.now,
      network,
      timeoutMs,
    }),
  discord: (origin, timeoutMs = 20_000) =>
    discord.open({
      name: "guild",
      url: createSecret(`${origin}/api/webhooks/1/${CANARY}?thread_id=9`),
      clock: Date.now,
      network,
      timeoutMs,
    }),
  "slack-bot": (origin, timeoutMs = 20_000) =>
    slackBot.open({
      name: "bot",
      token: createSecret(CANARY),
      channel: "#alerts",
      url: `${origin}/api/`,
      clock: Date.now,
      network,
      timeoutMs,
    }),
  alertmanager: (origin, timeoutMs = 20_000) =>
    alertmanager.open({
      name: "prom",
      url: createSecret(`${origin}/${CANARY}/?token=${CANARY}`),
      authorization: createSecret(`Bearer ${CANARY}`),
      clock: () => NOW,
      network,
      timeoutMs,
    }),
  opsgenie: (origin, timeoutMs = 20_000) =>
    opsgenie.open({
      name: "genie",
      apiKey: createSecret(`${CANARY}-genie`),
      url: `${origin}/${CANARY}/`,
      clock: Date.now,
      network,
      timeoutMs,
    }),
  "jira-service-management": (origin, timeoutMs = 20_000) =>
    jiraServiceManagement.open({
      name: "jira",
      apiKey: createSecret(`${CANARY}-genie`),
      url: `${origin}/${CANARY}/jsm/ops/integration`,
      clock: Date.now,
      network,
      timeoutMs,
    }),
  mattermost: (origin, timeoutMs = 20_000) =>
    mattermost.open({
      name: "team",
      token: createSecret(CANARY),
      channel: CHANNEL_ID,
      url: `${origin}/`,
      clock: Date.now,
      network,
      timeoutMs,
    }),
  "google-chat": (origin, timeoutMs = 20_000) =>
    googleChat.open({
      name: "space",
      url: createSecret(`${origin}/v1/spaces/AAA/messages?key=${CANARY}&token=${CANARY}`),
      clock: Date.now,
      network,
      timeoutMs,
    }),
  telegram: (origin, timeoutMs = 20_000) =>
    telegram.open({
      name: "group",
      token: createSecret(`1:${CANARY}`),
      chat: "-1001",
      url: `${origin}/`,
      clock: Date.now,
      network,
      timeoutMs,
    }),
  ntfy: (origin, timeoutMs = 20_000) =>
    ntfy.open({
      name: "phone",
      url: createSecret(`${origin}/${CANARY}`),
      token: createSecret(`tk_${CANARY}`),
      clock: Date.now,
      network,
      timeoutMs,
    }),
  pushover: (origin, timeoutMs = 20_000) =>
    pushover.open({
      name: "phone",
      token: createSecret(CANARY),
      user: createSecret(`u${CANARY}`),
      url: `${origin}/1/messages.json`,
      clock: Date.now,
      network,
      timeoutMs,
    }),
};

/** The answer of a receiver of a kind, the reference in it, and the outcome of a cut answer. */
interface Answer {
  readonly body: unknown;
  readonly reference: string | null;
  readonly cut: { readonly providerReference: string | null } | { readonly code: "ENDPOINT_UNAVAILABLE" };
}

/** The name that ntfy gets for the alert of `messageOf`. */
export const SEQUENCE = digest(["episode-7"]);

export const PLAIN_ANSWER: Answer = { body: "ok", reference: null, cut: { providerReference: null } };

/** Kinds whose result is in the answer's body, not only in its status. */
export const ANSWERS: Readonly<Record<string, Answer>> = {
  teams: { ...PLAIN_ANSWER, body: "1" },
  pagerduty: { ...PLAIN_ANSWER, body: { status: "success", message: "Event processed", dedup_key: "7" } },
  opsgenie: { ...PLAIN_ANSWER, body: { result: "Request will be processed", took: 0.1, requestId: "1" } },
  "jira-service-management": {
    ...PLAIN_ANSWER,
    body: { result: "Request will be processed", took: 0.1, requestId: "1" },
  },
  discord: { body: { id: "42" }, reference: "42", cut: { providerReference: null } },
  alertmanager: { body: "", reference: "critical", cut: { providerReference: "critical" } },
  mattermost: { body: { id: POST_ID }, reference: POST_ID, cut: { providerReference: null } },
  "google-chat": { ...PLAIN_ANSWER, body: { name: "spaces/AAA/messages/BBB.BBB" } },
  telegram: {
    body: { ok: true, result: { message_id: 42, chat: { id: -1001 } } },
    reference: "-1001:42",
    cut: { providerReference: null },
  },
  ntfy: {
    body: { id: "xE73Iyuabi", time: 1_732_197_780, event: "message" },
    reference: SEQUENCE,
    cut: { providerReference: SEQUENCE },
  },
  pushover: { ...PLAIN_ANSWER, body: { status: 1, request: "647d2300-702c-4b38-8b2f-d56326ae460b" } },
  "slack-bot": {
    body: { ok: true, channel: "C0123", ts: "1732197780.000100" },
    reference: "C0123:1732197780.000100",
    cut: { code: "ENDPOINT_UNAVAILABLE" },
  },
};

export function sendOptions(over: Partial<SendOptions> = {}): SendOptions {
  const { signal } = new AbortController();
  return { signal, attempt: 1, deliveryKey: "episode-7-1-hook", providerReference: null, ...over };
}

/** Answers each question with the next of the given lists of addresses, the last one for ever. */
export function scriptedLookup(...answers: readonly (readonly string[])[]): LookupFunction {
  let asked = 0;
  return (_hostname, options, callback) => {
    const answer = answers[Math.min(asked, answers.length - 1)] ?? [];
    asked += 1;
    const found = answer.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    const first = found[0];
    if (options.all === true) callback(null, found);
    else callback(null, first?.address ?? "", first?.family ?? 4);
  };
}

export async function failureOf(sent: Promise<unknown>): Promise<Error> {
  try {
    await sent;
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
  throw new Error("it was delivered");
}
