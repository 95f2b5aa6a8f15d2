import { bigint, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../column-types.ts";

/** Longwatch's own keys; the key itself is shown once and never stored. Written by the key commands, read by http. */
export const apiKeys = pgTable("api_keys", {
  id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
  createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  expiresAt: timestamp({ withTimezone: true }),
  revokedAt: timestamp({ withTimezone: true }),
  lastUsedAt: timestamp({ withTimezone: true }),
  name: text().notNull(),
  /** SHA-256 of the key, which carries at least 128 random bits. */
  keyHash: bytea().notNull().unique("api_keys_key_hash"),
  /** The few characters shown where keys are listed. */
  hint: text().notNull(),
  roles: text().array().notNull(),
  /** Null is every zone. */
  zoneIds: integer().array(),
});
