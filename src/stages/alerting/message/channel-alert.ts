import { digest } from "#model/fingerprint.ts";

/**
 * Returns the fingerprint of the alert about a channel that does not deliver. No other alert's fingerprint contains its
 * name.
 */
export function channelFingerprint(channel: string): string {
  return digest(["self", "channel", channel]);
}

/** Content of the alert about a channel that fails. */
interface ChannelTrouble {
  readonly waiting: number;
  readonly givenUp: number;
  readonly lastError: string;
}

/** `trouble` is null once the channel delivers again, or is not configured any more. */
export function describeTrouble(
  channel: string,
  trouble: ChannelTrouble | null,
  isConfigured: boolean,
): string {
  if (!isConfigured) return `Channel ${channel} is not configured any more`;
  if (trouble === null) return `Channel ${channel} delivers again`;
  const { waiting, givenUp, lastError } = trouble;
  return `Channel ${channel} does not deliver (pending: ${waiting}, given up: ${givenUp}): ${lastError}`;
}
