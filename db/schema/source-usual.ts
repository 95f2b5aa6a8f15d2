import { date, integer, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { bytewiseText } from "../postgres/column-types.ts";

/**
 * The most rules that an address triggered on a UTC day in windows of 3, 15 and 60 minutes, from five rules in an hour
 * on. The second largest of a week is usual for the address. Holds addresses: kept for eight days, erased with its
 * person. Written by detect-sources.
 */
export const sourceUsual = pgTable(
  "source_usual",
  {
    zoneId: integer().notNull(),
    day: date().notNull(),
    peak3: integer().notNull(),
    peak15: integer().notNull(),
    peak60: integer().notNull(),
    /** The series count an IPv6 network of 64 bits as one address. */
    address: bytewiseText().notNull(),
  },
  (t) => [primaryKey({ columns: [t.zoneId, t.day, t.address] })],
);
