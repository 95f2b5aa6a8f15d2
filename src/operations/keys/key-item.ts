import { z } from "zod";
import type { ListedApiKey } from "#db/keys/api-keys.ts";
import { IsoTime, Name, Text } from "../fields.ts";

export const KeyItem = z
  .object({
    id: Name.describe("Public part of the key."),
    name: Text,
    roles: z.array(Name),
    zones: z.array(z.int()).nullable().describe("Null means every zone."),
    masked: z.boolean().describe("The key sees no raw records, and IP addresses only masked."),
    createdAt: IsoTime,
    expiresAt: IsoTime.nullable(),
    revokedAt: IsoTime.nullable(),
    lastUsedAt: IsoTime.nullable().describe("Accurate to the minute."),
    isLive: z.boolean(),
    endsWith: Name.nullable().describe("Public part of the key that ends this one; null if none does."),
  })
  .meta({ id: "Key" });

/** A key as commands and routes show it; times are ISO texts. */
export function toKeyItem(key: ListedApiKey): z.output<typeof KeyItem> {
  const toText = (at: Date | null) => at?.toISOString() ?? null;
  return {
    id: key.keyId,
    name: key.name,
    roles: key.roles,
    zones: key.zoneIds,
    masked: key.isMasked,
    createdAt: key.createdAt.toISOString(),
    expiresAt: toText(key.expiresAt),
    revokedAt: toText(key.revokedAt),
    lastUsedAt: toText(key.lastUsedAt),
    isLive: key.isLive,
    endsWith: key.parentKeyId,
  };
}
