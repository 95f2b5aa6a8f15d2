import { and, eq, gt, type SQL, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { dirtyBuckets } from "../schema/dirty-buckets.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";
import type { ZoneDay } from "./day-source.ts";

const d = alias(dirtyBuckets, "d");

/** One hour of a day as coverage recorded it; times in ISO 8601. */
export interface HourEvidence {
  readonly startsAt: string;
  readonly state: string;
  readonly events: number;
  readonly platformCount: number | null;
  readonly sealedAt: string | null;
  readonly gapReason: string | null;
  readonly evidence: unknown;
}

/** Returns the recorded hours of a day, oldest first. */
export function readDayEvidence(db: Queryable, { zoneId, day }: ZoneDay): Promise<HourEvidence[]> {
  const { startsAt, state, storedCount, upstreamCount, sealedAt, gapReason, evidence } = coverageWindows;
  const iso = (column: PgColumn) =>
    sql<string>`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  return db
    .select({
      startsAt: iso(startsAt),
      state,
      events: storedCount,
      platformCount: upstreamCount,
      sealedAt: sql<string | null>`${iso(sealedAt)}`,
      gapReason,
      evidence,
    })
    .from(coverageWindows)
    .where(and(eq(coverageWindows.zoneId, zoneId), isOn(startsAt, day)))
    .orderBy(startsAt);
}

function isOn(time: PgColumn, day: string): SQL {
  return sql`${time} >= ${day}::date::timestamp at time zone 'UTC'
    and ${time} < (${day}::date + 1)::timestamp at time zone 'UTC'`;
}

/** A rule's hour of which the roll-up and the events differ. */
export interface DifferingHour {
  readonly hour: number;
  readonly ruleId: string;
  readonly counted: number;
  readonly events: number;
}

/** Returns the events per hour and rule according to the roll-up, in the order of `sumEvents`. */
export function readHourCounts(
  db: Queryable,
  { zoneId, day }: ZoneDay,
): Promise<{ hour: number; ruleId: string; events: number }[]> {
  const { startsAt, width, total, ruleId } = ruleBuckets;
  return db
    .select({
      hour: sql<number>`extract(hour from ${startsAt} at time zone 'UTC')::integer`,
      ruleId,
      events: total,
    })
    .from(ruleBuckets)
    .where(and(eq(ruleBuckets.zoneId, zoneId), eq(width, 3_600), gt(total, 0), isOn(startsAt, day)))
    .orderBy(sql`1, ${ruleId} collate "C"`);
}

/** Marks every minute of these hours as stale, so that the roll-up counts them again. */
export async function recountHours(
  db: Queryable,
  { zoneId, day }: ZoneDay,
  hours: readonly Pick<DifferingHour, "hour" | "ruleId">[],
): Promise<void> {
  await db.execute(sql`
    insert into ${dirtyBuckets} as ${d} (${names(d.zoneId, d.ruleId, d.minute)})
    select ${zoneId}, rule_id, (${day}::date::timestamp at time zone 'UTC') + make_interval(hours => hour, mins => minute)
    from unnest(${sql.param(hours.map(({ ruleId }) => ruleId))}::text[],
      ${sql.param(hours.map(({ hour }) => hour))}::integer[]) as given(rule_id, hour)
    cross join generate_series(0, 59) as minute
    order by rule_id collate "C", hour, minute
    on conflict (${names(d.zoneId, d.ruleId, d.minute)}) do update set ${names(d.marks)} = ${d.marks} + 1`);
}
