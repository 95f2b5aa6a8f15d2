/** API keys, sessions and what people did and saved. */
import { bigint, boolean, index, integer, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/terms.ts";

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
  /** Accounts whose zones of now the key is for, beside `zone_ids`, which then is no null. Null is none. */
  accounts: text().array(),
});

/**
 * People who are signed in to the console; each has the rights of one key, or their own if they signed in at the
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

/** Searches of the console under a name. Written and read by the API. `state` can hold addresses that were filtered for. */
export const savedViews = pgTable(
  "saved_views",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    changedAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
    /** Whether every key sees it. */
    isShared: boolean().notNull(),
    /** The public id of the key that saved it. */
    keyId: text().notNull(),
    createdBy: text().notNull(),
    /** The page that it belongs to. */
    page: text().notNull(),
    name: text().notNull(),
    /** The query part of the page's URL. */
    state: text().notNull(),
  },
  (t) => [index("saved_views_key").on(t.keyId)],
);

/**
 * Actions and their actors; append-only. Written by every route and command that changes something; read by the audit
 * API.
 */
export const auditEntries = pgTable(
  "audit_entries",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    at: timestamp({ withTimezone: true }).notNull().defaultNow(),
    actor: text().notNull(),
    action: text().notNull(),
    subject: text().notNull(),
    details: jsonb().notNull().default({}),
  },
  (t) => [index("audit_entries_at").on(t.at)],
);
