import { and, asc, eq, gte, isNull, lt, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { toDay } from "#model/horizon.ts";
import type { SeriesKey } from "#model/series-key.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive-files.ts";
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

/**
 * Returns the start of the first day of a zone (epoch ms) from which on all minutes are kept; null if all are. Minutes
 * of old archive days, those before `keptFrom` (epoch ms), are deleted; hours and days are not.
 */
export async function readMinutesFrom(
  db: Queryable,
  zoneId: number,
  keptFrom: number,
): Promise<number | null> {
  const { day, kind, retiredAt } = archiveFiles;
  const [row] = await db
    .select({ at: epochMs(sql<string | null>`(max(${day}) + 1)::timestamp at time zone 'UTC'`) })
    .from(archiveFiles)
    .where(
      and(eq(archiveFiles.zoneId, zoneId), lt(day, toDay(keptFrom)), eq(kind, "events"), isNull(retiredAt)),
    );
  return row?.at ?? null;
}
