import { digest } from "./fingerprint.ts";

/** The same for every transition of one episode, reopenings included: what receivers thread and resolve by. */
export function episodeKeyOf(alert: { readonly fingerprint: string; readonly firedAtMs: number }): string {
  return digest([alert.fingerprint, alert.firedAtMs]);
}

const PLAIN_CHANNEL = /^[\w-]{1,64}$/;

/**
 * One transition on one channel, the same at every attempt. At most 110 characters of `\w-`: signed webhooks join
 * their id with dots, so it may hold none.
 */
export function notificationKeyOf(episodeKey: string, transition: number, channel: string): string {
  const name = PLAIN_CHANNEL.test(channel) ? channel : digest([channel]);
  return `${episodeKey}-${transition}-${name}`;
}
