import { pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/**
 * Links that sign in once, and sign-ins at the issuer that are used up. Links are written by `longwatch start` and
 * `longwatch sign-in` and used up by http, which writes the secrets with which people came back from the issuer, so that none
 * opens a second session.
 */
export const signInTokens = pgTable("sign_in_tokens", {
  expiresAt: timestamp({ withTimezone: true }).notNull(),
  usedAt: timestamp({ withTimezone: true }),
  /** The public id of the key, or the id of the person, whose rights the session gets. */
  keyId: text().notNull(),
  /** SHA-256 of the token, which has 256 random bits. */
  tokenHash: bytea().primaryKey(),
});
