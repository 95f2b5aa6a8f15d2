import { pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/** Links that sign in once. Written by `longwatch start` and `longwatch sign-in`, used up by http. */
export const signInTokens = pgTable("sign_in_tokens", {
  expiresAt: timestamp({ withTimezone: true }).notNull(),
  usedAt: timestamp({ withTimezone: true }),
  /** The public id of the key whose rights the session gets. */
  keyId: text().notNull(),
  /** SHA-256 of the token, which has 256 random bits. */
  tokenHash: bytea().primaryKey(),
});
