import { z } from "zod";
import { createSecret } from "../lib/secret.ts";

/** A channel is named in routes, in the outbox and in metrics. */
const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, "must be lower-case letters, digits, - and _, at most 63 in all");
const secret = z
  .string()
  .min(1)
  .transform((value) => createSecret(value));
/** Admits private, loopback and carrier-grade-NAT addresses and plain http for this channel alone. */
const network = { allowPrivateNetworks: z.boolean().optional() };

const terminal = z.strictObject({ kind: z.literal("terminal"), name });

const webhook = z.strictObject({
  kind: z.literal("webhook"),
  name,
  /** Secret as a whole: its path and query let anyone post. */
  url: secret,
  /** `whsec_...`; the new and the old while a receiver moves. */
  secrets: z.array(secret).min(1),
  ...network,
});

const slack = z.strictObject({
  kind: z.literal("slack"),
  name,
  /** Of an incoming webhook. */
  url: secret,
  ...network,
});

const pagerduty = z.strictObject({
  kind: z.literal("pagerduty"),
  name,
  /** Of an Events API v2 integration. */
  routingKey: secret,
  /** `https://events.eu.pagerduty.com/v2/enqueue` for the EU. */
  url: z.url().optional(),
  ...network,
});

const teams = z.strictObject({
  kind: z.literal("teams"),
  name,
  /** Of a Workflows flow that starts with a webhook request. */
  url: secret,
  ...network,
});

const discord = z.strictObject({
  kind: z.literal("discord"),
  name,
  /** Of a webhook; `?thread_id=` posts into a thread. */
  url: secret,
  ...network,
});

const slackBot = z.strictObject({
  kind: z.literal("slack-bot"),
  name,
  /** `xoxb-...` with the scope `chat:write`. */
  token: secret,
  /** An id such as `C0123ABCD`, or a name with `#`. */
  channel: z.string().regex(/^(?:[A-Z0-9]{1,30}|#[^\s#]{1,80})$/u, "must be a channel's id, or #name"),
  /** Of the Web API, where it is not `https://slack.com/api`. */
  url: z.url().optional(),
  ...network,
});

const alertmanager = z.strictObject({
  kind: z.literal("alertmanager"),
  name,
  /** Without `/api/v2`. */
  url: secret,
  /** The whole Authorization header, such as `Bearer ...`. */
  authorization: secret.optional(),
  /** Put on every alert. */
  labels: z.record(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/), z.string().min(1).max(200)).optional(),
  /** How long a firing alert lives there without news: an hour longer than the longest repeat interval. */
  firingForHours: z.number().min(1).max(168).optional(),
  ...network,
});

const opsgenie = z.strictObject({
  kind: z.literal("opsgenie"),
  name,
  apiKey: secret,
  /** Without `/v2/alerts`; `https://api.eu.opsgenie.com` for the EU. */
  url: z.url().optional(),
  ...network,
});

const email = z.strictObject({
  kind: z.literal("email"),
  name,
  host: z.string().regex(/^[A-Za-z0-9.:-]{1,253}$/, "must be a host name or an address"),
  /** 587 speaks `starttls`, 465 `implicit`. */
  port: z.number().int().min(1).max(65_535).default(587),
  tls: z.enum(["starttls", "implicit", "none"]).default("starttls"),
  login: z.strictObject({ user: z.string().min(1), password: secret }).optional(),
  /** Bare addresses, `alerts@example.com`. */
  from: z.string().min(3).max(254),
  to: z.array(z.string().min(3).max(254)).min(1).max(50),
  ...network,
});

/**
 * One channel as a configuration file holds it, told apart by `kind`. Unknown fields are mistakes; credentials and the
 * addresses that are ones come out as Secret. What an address may be is checked when the channel is opened.
 */
export const channelConfig = z.discriminatedUnion("kind", [
  terminal,
  webhook,
  slack,
  pagerduty,
  teams,
  discord,
  slackBot,
  alertmanager,
  opsgenie,
  email,
]);

export type ChannelConfig = z.infer<typeof channelConfig>;
