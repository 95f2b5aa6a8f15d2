import { boolean, index, integer, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/**
 * People who are signed in to the console, each with the rights of one key, or with their own if they signed in at the
 * issuer. Written and read by http; its secrets are only in the browser: one in the cookie, one in the page.
 */
export const sessions = pgTable(
  "sessions",
  {
    createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Last use by a person, to the minute: streams and polls do not count. A session ends 12 hours after it. */
    lastUsedAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Set by a sign-out and by a revocation. */
    endedAt: timestamp({ withTimezone: true }),
    /** The end of the issuer's ID token. Null for a key's session. */
    tokenEndsAt: timestamp({ withTimezone: true }),
    /** Null for a key's session, as the person's other columns. */
    isMasked: boolean(),
    /** Public: lists and audit entries show it. */
    id: text().primaryKey(),
    /** The public id of a row of api_keys, without which the session is over; else the id of a person. */
    keyId: text().notNull(),
    /** The name of the person who signed in at the issuer. Null for a key's session. */
    personName: text(),
    /** The issuer's token, which its sign-out asks for. Null once the session has ended. */
    idToken: text(),
    /**
     * The values of the claim that gave the person these rights, by which they are granted again, and the settings that
     * chose the claim. Null as the token.
     */
    claims: jsonb().$type<{
      readonly issuer: string;
      readonly clientId: string;
      readonly claim: string;
      readonly values: readonly string[];
    }>(),
    roles: text().array(),
    /** Null is every zone. */
    zoneIds: integer().array(),
    /** Shortened; empty if the browser sent none. */
    userAgent: text().notNull(),
    /** SHA-256 of both secrets, which have 256 random bits each. */
    tokenHash: bytea().notNull().unique("sessions_token_hash"),
  },
  (t) => [index("sessions_key").on(t.keyId)],
);
