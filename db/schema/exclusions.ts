import { bigint, integer, jsonb, pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";
import type { ExclusionClause } from "#model/exclusion.ts";
import { spikes } from "./spikes.ts";

/**
 * Exclusions that Longwatch has proposed, one row per clause. `followedAt` is set when the rule went quiet on the clause
 * while its path did not. Written by judge-verdicts and learn-usual. Templates come from requests: hostile text.
 */
export const exclusions = pgTable(
  "exclusions",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    proposedAt: timestamp({ withTimezone: true }).notNull(),
    /** The rule's last event on the clause, if a person seems to have applied the exclusion. */
    followedAt: timestamp({ withTimezone: true }),
    /** The latest spike that it was proposed for. */
    spikeId: bigint({ mode: "number" }).references(() => spikes.id, { onDelete: "set null" }),
    zoneId: integer().notNull(),
    /** Distinguishes the clauses of a zone: a hash. */
    key: text().notNull(),
    clause: jsonb().$type<ExclusionClause>().notNull(),
  },
  (t) => [uniqueIndex("exclusions_clause").on(t.zoneId, t.key)],
);
