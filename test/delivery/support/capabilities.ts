import type { ChannelCapabilities, Notifier } from "#delivery/receivers/channel-definition.ts";
import { findChannel } from "#delivery/receivers/channels/registry.ts";
import type { ChannelKind } from "#model/kinds.ts";

export function capabilitiesOf(kind: ChannelKind): ChannelCapabilities {
  const definition = findChannel(kind);
  if (definition === undefined) throw new Error(`no channel of kind ${kind}`);
  return definition.capabilities;
}

/** Returns a notifier that sends as before and has the capabilities of another kind of channel. */
export function asKind(notifier: Notifier, kind: ChannelKind): Notifier {
  return { ...notifier, kind, capabilities: capabilitiesOf(kind) };
}
