import type { Secret } from "#lib/secret.ts";
import type { ChannelConfig } from "./channel-config.ts";

/** Returns every credential of these channels, wherever it is in their configuration. */
export function secretsOf(channels: readonly ChannelConfig[]): readonly Secret[] {
  return channels.flatMap(findSecrets);
}

function findSecrets(value: unknown): Secret[] {
  if (typeof value !== "object" || value === null) return [];
  return "reveal" in value ? [value as Secret] : Object.values(value).flatMap(findSecrets);
}
