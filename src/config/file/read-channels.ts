import { type ChannelConfig, channelConfig } from "#stages/delivery/channels/channel-config.ts";
import { openNotifier } from "#stages/delivery/channels/open-notifier.ts";
import { findChannel } from "#stages/delivery/channels/registry.ts";
import { channelEntry, channelFields } from "./channel-entry.ts";
import { checkOpening } from "./check-opening.ts";
import { type ReferenceContext, readEntry } from "./read-entry.ts";

const NO_TERMINAL = { write: () => true } as never;

/** Reads one channel of the file, as `readEntry`. */
export function readChannel(
  name: string,
  entry: unknown,
  context: ReferenceContext,
  mistakes: string[],
): ChannelConfig | null {
  const kinds = {
    part: "channels" as const,
    fields: channelFields,
    entry: channelEntry,
    exampleOf: (kind: string) => findChannel(kind)?.example,
    parse: (settings: unknown) => channelConfig.safeParse(settings).data ?? null,
    check: (config: ChannelConfig) =>
      checkOpening(config, context.allowPrivateNetworks, (network) =>
        openNotifier(config, { terminal: NO_TERMINAL, clock: () => 0, network }),
      ),
  };
  return readEntry(kinds, { name, entry }, context, mistakes);
}
