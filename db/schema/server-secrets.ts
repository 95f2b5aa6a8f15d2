import { pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { bytea } from "../postgres/column-types.ts";

/** Made up once and shared by all replicas: what signs page cursors. Written by the first to ask, read by http. */
export const serverSecrets = pgTable("server_secrets", {
  createdAt: timestamp({ withTimezone: true }).notNull().defaultNow(),
  name: text().primaryKey(),
  secret: bytea().notNull(),
});
