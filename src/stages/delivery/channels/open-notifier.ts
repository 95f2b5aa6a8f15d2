import type { Surroundings } from "../channel-definition.ts";
import type { NetworkPolicy } from "../network-policy.ts";
import type { Notifier } from "../notifier.ts";
import type { ChannelConfig } from "./channel-config.ts";
import { findChannel } from "./registry.ts";
import type { TerminalSurroundings } from "./terminal/terminal.ts";

/** The options that all channels of a process share. A channel's own `allowPrivateNetworks` overrides that of `network`. */
export type SharedSurroundings = Required<Pick<Surroundings, "clock" | "network">> & TerminalSurroundings;

function toNetwork(config: ChannelConfig, network: NetworkPolicy): NetworkPolicy {
  const own = "allowPrivateNetworks" in config ? config.allowPrivateNetworks : undefined;
  return own === undefined ? network : { ...network, allowPrivateNetworks: own };
}

/**
 * Opens a configured channel, which does not connect yet.
 * @throws {UsageError} listing every mistake of its addresses and secrets
 */
export function openNotifier(config: ChannelConfig, shared: SharedSurroundings): Notifier {
  const definition = findChannel(config.kind);
  if (definition === undefined) throw new Error(`There is no kind of channel named ${config.kind}.`);
  const options = { ...config, ...shared, network: toNetwork(config, shared.network) };
  return definition.open(options);
}
