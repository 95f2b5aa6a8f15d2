import { and, asc, desc, eq, gt, inArray, lte } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { alertTransitions } from "../schema/alert-transitions.ts";
import { alerts } from "../schema/alerts.ts";

/** One transition of an alert, with its number in the order of all of them. */
export interface FeedRow {
  readonly sequence: number;
  readonly alertId: number;
  readonly transition: number;
  /** Of the alert's history, as stored. */
  readonly entry: unknown;
  readonly headline: string | null;
  readonly kind: string;
  readonly zoneId: number | null;
  readonly ruleId: string | null;
  readonly fingerprint: string;
  readonly firedAt: Date;
}

/**
 * The transitions numbered in (after, through], oldest first. Numbers appear in their order, so that whoever goes on from
 * the last one misses none; only of zones in `zoneIds`, where it is not null.
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

/** The number of the newest transition; 0 before the first. */
export async function readFeedEnd(db: Queryable): Promise<number> {
  const [row] = await db
    .select({ id: alertTransitions.id })
    .from(alertTransitions)
    .orderBy(desc(alertTransitions.id))
    .limit(1);
  return row?.id ?? 0;
}
