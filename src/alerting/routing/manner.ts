import type { ChannelCapabilities } from "../../delivery/channel-definition.ts";
import { findChannel } from "../../delivery/channels/registry.ts";

/**
 * What another message about a known alert does on a channel. rings: it is posted anew, and heard. edits: it can change
 * the old one without a sound. keyed: the receiver knows the alert by its key and never pages for it twice.
 */
export type Manner = "rings" | "edits" | "keyed";

const MANNERS: Readonly<Record<ChannelCapabilities["laterTransitions"], Manner>> = {
  "post-anew": "rings",
  "update-in-place": "edits",
  "same-incident": "keyed",
};

/** By the notifier's kind; a channel that this process does not have posts anew. */
export function mannerOf(kind: string | undefined): Manner {
  return MANNERS[findChannel(kind)?.capabilities.laterTransitions ?? "post-anew"];
}
