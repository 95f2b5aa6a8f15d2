import { pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/**
 * Random secrets shared by all replicas, such as the one that signs page cursors and the key of the hashes of matched texts.
 * Written by the first replica that reads a secret, read by http and ingest.
 */
export const serverSecrets = pgTable("server_secrets", {
  createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  name: text().primaryKey(),
  secret: bytea().notNull(),
});
