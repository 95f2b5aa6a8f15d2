import { bigint, boolean, index, pgTable, text, timestamp } from "drizzle-orm/pg-core";

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
