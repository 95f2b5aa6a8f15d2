import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import type { ZoneDay } from "./day-source.ts";

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
export async function readDayEvidence(db: Queryable, { zoneId, day }: ZoneDay): Promise<HourEvidence[]> {
  const iso = (column: string) =>
    sql.raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`);
  const { rows } = await db.execute<HourEvidence & Record<string, unknown>>(sql`
    select ${iso("starts_at")} as "startsAt", state, stored_count as events, upstream_count as "platformCount",
      ${iso("sealed_at")} as "sealedAt", gap_reason as "gapReason", evidence
    from coverage_windows
    where zone_id = ${zoneId} and starts_at >= ${day}::date::timestamp at time zone 'UTC'
      and starts_at < (${day}::date + 1)::timestamp at time zone 'UTC'
    order by starts_at`);
  return rows;
}

/** A rule's hour of which the roll-up and the events differ. */
export interface DifferingHour {
  readonly hour: number;
  readonly ruleId: string;
  readonly counted: number;
  readonly events: number;
}

/** Returns the events per hour and rule according to the roll-up, in the order of `sumEvents`. */
export async function readHourCounts(
  db: Queryable,
  { zoneId, day }: ZoneDay,
): Promise<{ hour: number; ruleId: string; events: number }[]> {
  const { rows } = await db.execute<{ hour: number; ruleId: string; events: number }>(sql`
    select extract(hour from starts_at at time zone 'UTC')::integer as hour, rule_id as "ruleId", total as events
    from rule_buckets
    where zone_id = ${zoneId} and width = 3600 and total > 0
      and starts_at >= ${day}::date::timestamp at time zone 'UTC'
      and starts_at < (${day}::date + 1)::timestamp at time zone 'UTC'
    order by 1, rule_id collate "C"`);
  return rows;
}

/** Marks every minute of these hours as stale, so that the roll-up counts them again. */
export async function recountHours(
  db: Queryable,
  { zoneId, day }: ZoneDay,
  hours: readonly Pick<DifferingHour, "hour" | "ruleId">[],
): Promise<void> {
  await db.execute(sql`
    insert into dirty_buckets (zone_id, rule_id, minute)
    select ${zoneId}, rule_id, (${day}::date::timestamp at time zone 'UTC') + make_interval(hours => hour, mins => minute)
    from unnest(${sql.param(hours.map(({ ruleId }) => ruleId))}::text[],
      ${sql.param(hours.map(({ hour }) => hour))}::integer[]) as given(rule_id, hour)
    cross join generate_series(0, 59) as minute
    order by rule_id collate "C", hour, minute
    on conflict (zone_id, rule_id, minute) do update set marks = dirty_buckets.marks + 1`);
}
