import type { ListedApiKey } from "#db/keys/api-keys.ts";
import { escapeText } from "#lib/escape-text.ts";
import { showTime } from "#lib/show-time.ts";

/** Returns one line with its line break. */
export function describeKey(key: ListedApiKey): string {
  const { keyId, name, roles, zoneIds, isMasked } = key;
  const zones = zoneIds === null ? "every zone" : `zone ${zoneIds.join(", ")}`;
  const parts = [
    roles.join(", "),
    zones,
    ...(isMasked ? ["masked"] : []),
    statusOf(key),
    ...(key.parentKeyId === null ? [] : [`ends with ${key.parentKeyId}`]),
    key.lastUsedAt === null ? "never used" : `last used ${showTime(key.lastUsedAt.getTime())}`,
  ];
  return `${keyId}  ${escapeText(name)}: ${parts.join("; ")}\n`;
}

export function statusOf({ revokedAt, expiresAt, isLive }: ListedApiKey): string {
  if (revokedAt !== null) return `revoked ${showTime(revokedAt.getTime())}`;
  if (expiresAt === null) return "until it is revoked";
  return `${isLive ? "until" : "expired"} ${showTime(expiresAt.getTime())}`;
}
