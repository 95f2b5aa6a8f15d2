import { and, asc, desc, eq, gt, inArray, lte } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { alerts, alertTransitions } from "../schema/alerts.ts";

/** One transition of an alert, with its number in the order of all transitions. */
export interface FeedRow {
  readonly sequence: number;
  readonly alertId: number;
  readonly transition: number;
  /** The entry of the alert's history, as stored. */
  readonly entry: unknown;
  readonly headline: string | null;
  readonly kind: string;
  readonly zoneId: number | null;
  readonly ruleId: string | null;
  readonly fingerprint: string;
  readonly firedAt: Date;
}

/**
 * Returns the transitions numbered in (after, through], oldest first. Numbers become visible in ascending order, so a
 * reader that continues after the last number misses no transition. Keeps only zones in `zoneIds`, unless it is null.
 */
export function readFeed(
  db: Queryable,
  query: {
    readonly after: number;
    readonly through?: number;
    readonly zoneIds: readonly number[] | null;
    readonly limit: number;
  },
): Promise<FeedRow[]> {
  const { after, through, zoneIds, limit } = query;
  return db
    .select({
      sequence: alertTransitions.id,
      alertId: alertTransitions.alertId,
      transition: alertTransitions.transition,
      entry: alertTransitions.entry,
      headline: alertTransitions.headline,
      kind: alerts.kind,
      zoneId: alerts.zoneId,
      ruleId: alerts.ruleId,
      fingerprint: alerts.fingerprint,
      firedAt: alerts.firedAt,
    })
    .from(alertTransitions)
    .innerJoin(alerts, eq(alerts.id, alertTransitions.alertId))
    .where(
      and(
        gt(alertTransitions.id, after),
        through === undefined ? undefined : lte(alertTransitions.id, through),
        zoneIds === null ? undefined : inArray(alerts.zoneId, [...zoneIds]),
      ),
    )
    .orderBy(asc(alertTransitions.id))
    .limit(limit);
}

/** Returns the number of the newest transition, or 0 before the first. */
export async function readFeedEnd(db: Queryable): Promise<number> {
  const [row] = await db
    .select({ id: alertTransitions.id })
    .from(alertTransitions)
    .orderBy(desc(alertTransitions.id))
    .limit(1);
  return row?.id ?? 0;
}
