/** What a channel is: its settings, what it can do, and the notifier that sends. */
import { z } from "zod";
import { applyTemplate, findTemplateFault, MAX_TEMPLATE_CHARS } from "#delivery/rules/message/template.ts";
import type { Clock } from "#lib/clock.ts";
import { createSecret } from "#lib/secret.ts";
import type { AlertMessage, LaterMessage } from "#model/alert-message.ts";
import type { NetworkPolicy } from "./endpoint.ts";

/** The parts that the opening process gives to a channel. */
export interface SenderContext {
  readonly clock: Clock;
  readonly network?: NetworkPolicy;
  /** Time limit of one attempt. Default: the channel's own limit. */
  readonly timeoutMs?: number;
}

type Fields = z.ZodRawShape;
type Named<Settings extends Fields> = { readonly name: string } & z.output<
  z.ZodObject<{ name: z.ZodString } & Settings>
>;

/** The inputs of a sender: the channel's name, its settings, and the parts of the process. */
export type SenderOptions<Settings extends Fields, Needs = SenderContext> = Named<Settings> & Needs;

interface ChannelFacts<Kind extends string, Settings extends Fields> {
  readonly kind: Kind;
  /** The fields of an entry in the configuration file besides `kind` and `name`. Secrets are `secretText`. */
  readonly settings: Settings;
  /** Valid settings with an address that does not exist. They replace required settings that are missing or wrong. */
  readonly example: z.input<z.ZodObject<Settings>>;
  readonly capabilities: ChannelCapabilities;
  /** Returns the bodies that the receiver gets for one transition, in order, with the default settings. */
  readonly render: (message: AlertMessage, atMs: number) => readonly unknown[];
}

interface ChannelSource<Kind extends string, Settings extends Fields, Needs>
  extends ChannelFacts<Kind, Settings> {
  /** @throws {UsageError} listing every mistake of its addresses and secrets */
  readonly createSender: (options: SenderOptions<Settings, Needs>) => Notifier["send"];
}

interface ChannelDefinition<Kind extends string = string, Settings extends Fields = Fields, Needs = object>
  extends ChannelFacts<Kind, Settings> {
  /** The channel as a configuration holds it, with its secrets. Unknown fields are mistakes. */
  readonly schema: z.ZodObject<
    { kind: z.ZodLiteral<Kind>; name: typeof channelName } & Settings,
    z.core.$strict
  >;
  /**
   * Opens the channel, which does not connect yet.
   * @throws {UsageError} listing every mistake of its addresses and secrets
   */
  open(options: SenderOptions<Settings, Needs>): Notifier;
}

/** Any kind of channel. The caller has parsed the configuration with `schema` before opening the channel. */
export interface AnyChannel extends ChannelFacts<string, Fields> {
  open(options: { readonly name: string }): Notifier;
}

/** Name of the channel in routes, the outbox and metrics. */
const channelName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, "must be lower-case letters, digits, - and _, at most 63 in all");

/** A credential, or an address that is one. */
export const secretText = z
  .string()
  .min(1)
  .transform((value) => createSecret(value));

/** Admits private, loopback and carrier-grade-NAT addresses and plain http for one channel. */
export const addressSettings = { allowPrivateNetworks: z.boolean().optional() };

export const networkSettings = {
  ...addressSettings,
  /** In the file, a file of certificate authorities in PEM; once the file is read, its text. */
  caFile: z
    .string()
    .min(1)
    .optional()
    .describe(
      "certificate authorities in PEM that are trusted instead of the public ones; relative to this file",
    ),
};

/** The settings of a channel whose messages are a text. */
export const textSettings = {
  ...networkSettings,
  template: z
    .string()
    .min(1)
    .max(MAX_TEMPLATE_CHARS)
    .superRefine((text, context) => {
      const fault = findTemplateFault(text);
      if (fault !== null) context.addIssue(`must be a template in Liquid: ${fault}`);
    })
    .optional()
    .describe("a Liquid template whose text replaces that of the messages"),
};

/** Returns the template of a channel; undefined if it has none. */
export function templateOf(channel: object): string | undefined {
  return "template" in channel && typeof channel.template === "string" ? channel.template : undefined;
}

/** Sends with the text of the template. If that cannot be rendered, the message is sent as without it, with a note. */
function withTemplate(template: string | undefined, send: Notifier["send"]): Notifier["send"] {
  if (template === undefined) return send;
  return async (plain, sending) => {
    const { message, fault } = applyTemplate(template, plain);
    const result = await send(message, sending);
    return fault === null
      ? result
      : { ...result, note: `TEMPLATE_FAILED: sent without the template: ${fault}` };
  };
}

/** Returns the policy with the entry's own settings, which override those of the process. */
export function toNetwork(
  own: {
    readonly name?: unknown;
    readonly allowPrivateNetworks?: boolean | undefined;
    readonly caFile?: string | undefined;
  },
  network: NetworkPolicy = {},
): NetworkPolicy {
  const { allowPrivateNetworks = network.allowPrivateNetworks, caFile: ca = network.ca } = own;
  return {
    ...network,
    ...(allowPrivateNetworks === undefined ? {} : { allowPrivateNetworks }),
    ...(ca === undefined ? {} : { ca }),
  };
}

export function defineChannel<Kind extends string, Settings extends Fields, Needs = SenderContext>(
  source: ChannelSource<Kind, Settings, Needs>,
): ChannelDefinition<Kind, Settings, Needs> {
  const { createSender, ...facts } = source;
  const { kind, settings, capabilities } = facts;
  return {
    ...facts,
    schema: z.strictObject({ kind: z.literal(kind), name: channelName, ...settings }),
    open: (options) => {
      const send = withTemplate(templateOf(options), createSender(options));
      return { name: options.name, kind, capabilities, send };
    },
  };
}

/** The capabilities of a channel. Every field is required, so a channel that leaves one out does not compile. */
export interface ChannelCapabilities {
  /** People read far fewer messages than most receivers accept, so chats have lower rates than the vendors allow. */
  readonly rate: ChannelRate;
  /** The longest pause between two probes while the channel's circuit is open: a minute for pagers, two for chats. */
  readonly longestPauseMs: number;
  /** The way the channel shows a later transition of an alert. */
  readonly laterTransitions: LaterMessage;
  /** True if an acknowledgement changes what the receiver shows. Other channels get no acknowledgements. */
  readonly showsAcknowledgements: boolean;
  /**
   * The age at which the last message of a firing alert is sent again, before the receiver ends the alert by itself.
   * Null if the receiver keeps the alert until it is resolved.
   */
  readonly renewAfterMs: number | null;
  readonly limits: MessageLimits;
}

const CHAT = { longestPauseMs: 2 * 60_000, renewAfterMs: null } as const;
/** Capabilities of chats that update one message per alert. */
export const EDITED_CHAT = {
  ...CHAT,
  laterTransitions: "update-in-place",
  showsAcknowledgements: true,
} as const;
/** Capabilities of chats that post each transition. */
export const POSTED_CHAT = { ...CHAT, laterTransitions: "post-anew", showsAcknowledgements: false } as const;

interface MessageLimits {
  /** The largest message. Null if the receiver has no limit. */
  readonly message: { readonly most: number; readonly unit: "characters" | "bytes" } | null;
  /** Members of a group that a message shows with their counts. The other members are listed by name. */
  readonly memberRows: number;
}

export interface DigestRoom {
  /** The place where a digest lists the names of its alerts. `headline` is for receivers that show nothing else. */
  readonly in: "list" | "headline";
  /** Characters of all names in one digest. */
  readonly maxChars: number;
  /** Characters that each name takes besides the name itself. */
  readonly charsBeside: number;
}

export interface ChannelRate {
  /** Number of messages per minute. After a minute without messages as many may be sent at once. */
  readonly perMinute: number;
  /**
   * The way notifications above the rate are merged into one message. Null for receivers that count and close alerts by
   * key: they would count a digest as one more alert, so notifications above the rate wait.
   */
  readonly digest: DigestRoom | null;
}

export interface SendOptions {
  /** Aborts the attempt; the notifier then rejects with the signal's reason. */
  readonly signal: AbortSignal;
  /** The first attempt is 1. */
  readonly attempt: number;
  /** Equal for all attempts of this transition on this channel, so that a receiver can drop a duplicate. */
  readonly deliveryKey: string;
  /**
   * The reference that an earlier transition of this alert returned on this channel, if the provider can edit in place.
   */
  readonly providerReference: string | null;
  /** The last progress that `onProgress` got in an earlier attempt of this transition. */
  readonly progress?: string | null;
  /** Called with the progress of a message of several parts; stored for the next attempt. */
  readonly onProgress?: (progress: string) => void;
}

export interface SendResult {
  readonly providerReference: string | null;
  /** Number of messages that the receiver was sent; one by default. */
  readonly messages?: number;
  /** One line about a delivery that was not as configured. */
  readonly note?: string;
}

/**
 * One configured channel. `send` resolves when the receiver has accepted the message; it throws DeliveryError, or the
 * signal's reason. A lost reply counts as a failure, so a message may arrive twice, but is never lost without an error.
 */
export interface Notifier {
  /** The channel's name in the configuration, and in the outbox. */
  readonly name: string;
  readonly kind: string;
  readonly capabilities: ChannelCapabilities;
  send(message: AlertMessage, options: SendOptions): Promise<SendResult>;
}
