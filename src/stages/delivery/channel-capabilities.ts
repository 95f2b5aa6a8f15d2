import type { LaterMessage } from "#model/later-message.ts";
import type { ChannelRate } from "./channel-rate.ts";

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

interface MessageLimits {
  /** The largest message. Null if the receiver has no limit. */
  readonly message: { readonly most: number; readonly unit: "characters" | "bytes" } | null;
  /** Members of a group that a message shows with their counts. The other members are listed by name. */
  readonly memberRows: number;
}
