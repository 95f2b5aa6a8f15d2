import type { Secret } from "#lib/secret.ts";
import type { ChannelConfig } from "./channel-config.ts";

/** Every credential of these channels, wherever in their configuration it is. */
export function secretsOf(channels: readonly ChannelConfig[]): readonly Secret[] {
  return channels.flatMap(findSecrets);
}

function findSecrets(value: unknown): Secret[] {
  if (typeof value !== "object" || value === null) return [];
  return "reveal" in value ? [value as Secret] : Object.values(value).flatMap(findSecrets);
}
