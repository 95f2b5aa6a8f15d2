import { index, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/**
 * People who are signed in to the console, each with the rights of one key. Written and read by http; its secrets
 * are only in the browser: one in the cookie, one in the page.
 */
export const sessions = pgTable(
  "sessions",
  {
    createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** By a person, to the minute: streams and polls are no use. A session ends 12 hours after it. */
    lastUsedAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Set by a sign-out and by a revocation. */
    endedAt: timestamp({ withTimezone: true }),
    /** Public: lists and audit entries show it. */
    id: text().primaryKey(),
    /** The public id of a row of api_keys, without which the session is over. */
    keyId: text().notNull(),
    /** Shortened; empty if the browser sent none. */
    userAgent: text().notNull(),
    /** SHA-256 of both secrets, which have 256 random bits each. */
    tokenHash: bytea().notNull().unique("sessions_token_hash"),
  },
  (t) => [index("sessions_key").on(t.keyId)],
);
