import { and, asc, desc, eq, gte, inArray, isNotNull, sql } from "drizzle-orm";
import type { Mark, VerdictLook } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import type { Queryable } from "../client.ts";
import { exclusions } from "../schema/exclusions.ts";
import { spikes } from "../schema/spikes.ts";
import { verdictWeights } from "../schema/verdict-weights.ts";
import { verdicts } from "../schema/verdicts.ts";

/** The most marked spikes that a score card or a fit reads. */
const MOST_MARKED = 20_000;

export interface MarkedVerdict {
  readonly openedAt: Date;
  readonly mark: Mark;
  readonly said: StoredVerdict["said"];
  readonly features: StoredVerdict["features"];
}

/**
 * Returns the newest marked spikes with what was said of them at a look, or at the latest look of each. `zoneIds` null is
 * every zone.
 */
export async function readMarkedVerdicts(
  db: Queryable,
  from: {
    readonly sinceMs: number;
    readonly zoneIds: readonly number[] | null;
    readonly look?: VerdictLook | undefined;
  },
): Promise<MarkedVerdict[]> {
  const { id, openedAt, mark, zoneId } = spikes;
  const { look, said, verdict, spikeId, judgedAt } = verdicts;
  const features = sql<StoredVerdict["features"]>`${verdict} -> 'features'`;
  return db
    .selectDistinctOn([id], { openedAt, mark: sql<Mark>`${mark}`, said, features })
    .from(spikes)
    .innerJoin(verdicts, eq(spikeId, id))
    .where(
      and(
        isNotNull(mark),
        gte(openedAt, new Date(from.sinceMs)),
        from.zoneIds === null ? undefined : inArray(zoneId, [...from.zoneIds]),
        from.look === undefined ? undefined : eq(look, from.look),
      ),
    )
    .orderBy(desc(id), desc(judgedAt))
    .limit(MOST_MARKED);
}

/** Stores the weights that verdicts are judged with from now on; null returns to the shipped ones. */
export async function insertWeights(tx: Queryable, row: typeof verdictWeights.$inferInsert): Promise<void> {
  await tx.insert(verdictWeights).values(row);
}

/** Returns the exclusions that were proposed for a spike, the oldest first. */
export function readProposals(db: Queryable, spikeId: number) {
  const { clause, proposedAt, followedAt, id } = exclusions;
  const isOf = eq(exclusions.spikeId, spikeId);
  return db.select({ clause, proposedAt, followedAt }).from(exclusions).where(isOf).orderBy(asc(id));
}
