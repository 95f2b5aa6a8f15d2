import { and, asc, eq, gte, lt, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { SeriesKey } from "#model/series-key.ts";
import type { Queryable } from "../client.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";

const b = alias(ruleBuckets, "b");

/** Returns the zone's rules that have events in minutes of [fromMs, toMs). */
export async function readActiveRules(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<string[]> {
  const { startsAt, width, ruleId } = ruleBuckets;
  const rows = await db
    .selectDistinct({ ruleId })
    .from(ruleBuckets)
    .where(
      and(
        eq(ruleBuckets.zoneId, zoneId),
        eq(width, 60),
        gte(startsAt, new Date(fromMs)),
        lt(startsAt, new Date(toMs)),
      ),
    )
    .orderBy(asc(ruleId));
  return rows.map((row) => row.ruleId);
}

/**
 * Returns the minutes (since the epoch) with events in [fromMs, toMs), and the first minute that is known before
 * them, ascending.
 */
export async function readReplayCounts(
  db: Queryable,
  { zoneId, ruleId }: SeriesKey,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<{ minute: number; count: number }[]> {
  const { startsAt, width, total } = ruleBuckets;
  const first = sql`(select min(${b.startsAt}) from ${ruleBuckets} ${b}
    where ${b.zoneId} = ${zoneId} and ${b.ruleId} = ${ruleId} and ${b.width} = 60)`;
  const rows = await db
    .select({ startsAt, count: total })
    .from(ruleBuckets)
    .where(
      and(
        eq(ruleBuckets.zoneId, zoneId),
        eq(ruleBuckets.ruleId, ruleId),
        eq(width, 60),
        or(gte(startsAt, new Date(fromMs)), eq(startsAt, first)),
        lt(startsAt, new Date(toMs)),
      ),
    )
    .orderBy(asc(startsAt));
  return rows.map((row) => ({ minute: row.startsAt.getTime() / 60_000, count: row.count }));
}
