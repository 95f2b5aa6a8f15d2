import type { ChannelConfig } from "./channels/channel-config.ts";

/** The day on which Atlassian ends Opsgenie and its API (support.atlassian.com, "What happens when Opsgenie is turned off"). */
export const OPSGENIE_ENDS = "2027-04-05";

/** Returns the names of the channels that send to Opsgenie itself. A compatible service at another address goes on. */
export function listEnding(channels: readonly ChannelConfig[]): string[] {
  return channels
    .filter((one) => one.kind === "opsgenie" && (one.url === undefined || isOwn(new URL(one.url))))
    .map(({ name }) => name);
}

function isOwn({ hostname }: URL): boolean {
  return hostname === "opsgenie.com" || hostname.endsWith(".opsgenie.com");
}
