import { digest } from "./fingerprint.ts";

/**
 * Returns the key that all transitions of one episode share, reopenings included. Receivers group and resolve by it.
 */
export function episodeKeyOf(alert: { readonly fingerprint: string; readonly firedAtMs: number }): string {
  return digest([alert.fingerprint, alert.firedAtMs]);
}

const PLAIN_CHANNEL = /^[\w-]{1,64}$/;

/**
 * Returns the key of one transition on one channel, which is the same at every attempt. It has at most 110 characters
 * of `\w-`. It contains no dot, because signed webhooks join their id with dots.
 */
export function notificationKeyOf(episodeKey: string, transition: number, channel: string): string {
  const name = PLAIN_CHANNEL.test(channel) ? channel : digest([channel]);
  return `${episodeKey}-${transition}-${name}`;
}
