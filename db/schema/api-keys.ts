import { bigint, boolean, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/** Longwatch's own keys; the key itself is shown once and never stored. Written by the key commands, read by http. */
export const apiKeys = pgTable("api_keys", {
  id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
  createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  expiresAt: timestamp({ withTimezone: true }),
  revokedAt: timestamp({ withTimezone: true }),
  /** Exact to the minute. */
  lastUsedAt: timestamp({ withTimezone: true }),
  /** True if the key's user sees no raw record, and addresses only masked. */
  isMasked: boolean().notNull().default(false),
  /** The id in the key's own text, by which the key is found. It is no secret. */
  keyId: text().notNull().unique("api_keys_key_id"),
  /** The id of the key that made this one and that ends it: this key expires no later, and is revoked with it. */
  parentKeyId: text(),
  name: text().notNull(),
  /** SHA-256 of the key, which carries at least 128 random bits. */
  keyHash: bytea().notNull().unique("api_keys_key_hash"),
  roles: text().array().notNull(),
  /** Null is every zone. */
  zoneIds: integer().array(),
});
