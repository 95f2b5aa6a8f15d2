import { type Surroundings, toNetwork } from "../channel-definition.ts";
import type { Notifier } from "../notifier.ts";
import type { ChannelConfig } from "./channel-config.ts";
import { findChannel } from "./registry.ts";
import type { TerminalSurroundings } from "./terminal/terminal.ts";

/** The options that all channels of a process share. A channel's own settings override those of `network`. */
export type SharedSurroundings = Required<Pick<Surroundings, "clock" | "network">> & TerminalSurroundings;

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
