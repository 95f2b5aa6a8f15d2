import { z } from "zod";
import type { Clock } from "#lib/clock.ts";
import { createSecret } from "#lib/secret.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { ChannelCapabilities } from "./channel-capabilities.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";

/** The parts that the opening process gives to a channel. */
export interface Surroundings {
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
export type SenderOptions<Settings extends Fields, Needs = Surroundings> = Named<Settings> & Needs;

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

export interface ChannelDefinition<
  Kind extends string = string,
  Settings extends Fields = Fields,
  Needs = object,
> extends ChannelFacts<Kind, Settings> {
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

export function defineChannel<Kind extends string, Settings extends Fields, Needs = Surroundings>(
  source: ChannelSource<Kind, Settings, Needs>,
): ChannelDefinition<Kind, Settings, Needs> {
  const { createSender, ...facts } = source;
  const { kind, settings, capabilities } = facts;
  return {
    ...facts,
    schema: z.strictObject({ kind: z.literal(kind), name: channelName, ...settings }),
    open: (options) => ({ name: options.name, kind, capabilities, send: createSender(options) }),
  };
}
