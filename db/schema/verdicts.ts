import {
  bigint,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
} from "drizzle-orm/pg-core";
import { VERDICT_LOOKS, VERDICTS } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { isOneOf } from "../postgres/is-one-of.ts";
import { spikes } from "./spikes.ts";

/**
 * The verdict on a spike, one row per look. Written by judge-verdicts; read by raise-alerts and the alert's page.
 * Holds a sample request: retention, erasure and pseudonyms apply.
 */
export const verdicts = pgTable(
  "verdicts",
  {
    spikeId: bigint({ mode: "number" })
      .notNull()
      .references(() => spikes.id, { onDelete: "cascade" }),
    judgedAt: timestamp({ withTimezone: true }).notNull(),
    zoneId: integer().notNull(),
    look: text({ enum: VERDICT_LOOKS }).notNull(),
    said: text({ enum: VERDICTS }).notNull(),
    verdict: jsonb().$type<StoredVerdict>().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.spikeId, t.look] }),
    index("verdicts_judged").on(t.zoneId, t.judgedAt),
    check("verdicts_look", isOneOf(t.look, VERDICT_LOOKS)),
    check("verdicts_said", isOneOf(t.said, VERDICTS)),
  ],
);
