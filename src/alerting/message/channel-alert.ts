import { digest } from "../../model/fingerprint.ts";

/** The alert that a channel does not deliver; its name is in no other's. */
export function channelFingerprint(channel: string): string {
  return digest(["self", "channel", channel]);
}

/** What the other channels are told of one that fails. */
interface ChannelTrouble {
  readonly waiting: number;
  readonly givenUp: number;
  readonly lastError: string;
}

/** `trouble` is null once the channel delivers again. */
export function describeTrouble(channel: string, trouble: ChannelTrouble | null): string {
  if (trouble === null) return `Channel ${channel} delivers again`;
  const { waiting, givenUp, lastError } = trouble;
  return `Channel ${channel} does not deliver (pending: ${waiting}, given up: ${givenUp}): ${lastError}`;
}
