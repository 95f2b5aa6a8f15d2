import type { AlertMessage } from "#model/alert-message.ts";
import type { ChannelCapabilities } from "./channel-capabilities.ts";

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
