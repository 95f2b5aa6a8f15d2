import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

/** A rule in one hour: the stored count and the platform's. */
export interface RuleCell {
  readonly ruleId: string;
  readonly stored: number;
  /** Null if the platform was not asked about the hour yet. */
  readonly platform: number | null;
  readonly repairs: number;
}

interface Asked {
  readonly zoneId: number;
  /** Start of the hour, epoch ms. */
  readonly startsAt: number;
  readonly limit: number;
}

/**
 * Returns the counts of an hour by rule, those that differ first. A comparison records only the rules whose counts
 * differ; of the others the platform's count is the stored one.
 */
export async function readRuleCells(
  db: Queryable,
  { zoneId, startsAt, limit }: Asked,
): Promise<{ readonly comparedAt: number | null; readonly cells: RuleCell[] }> {
  const hour = new Date(startsAt);
  const { rows } = await db.execute<
    { [Key in keyof RuleCell]: RuleCell[Key] } & { comparedAt: number | null }
  >(sql`
    with compared as (
      select reconciled_at from coverage_windows where zone_id = ${zoneId} and starts_at = ${hour}),
    here as (
      select rule_id, total from rule_buckets
      where zone_id = ${zoneId} and width = 3600 and starts_at = ${hour}),
    differing as (
      select rule_id, upstream_count, repairs, resolved_at from differing_cells
      where zone_id = ${zoneId} and starts_at = ${hour})
    select rule_id as "ruleId", coalesce(total, 0)::float8 as stored, coalesce(repairs, 0)::integer as repairs,
      (case when (select reconciled_at from compared) is null then null
        when upstream_count is not null and resolved_at is null then upstream_count
        else coalesce(total, 0) end)::float8 as platform,
      (select extract(epoch from reconciled_at) * 1000 from compared)::float8 as "comparedAt"
    from here full join differing using (rule_id)
    where coalesce(total, 0) > 0 or resolved_at is null
    order by (upstream_count is not null and resolved_at is null) desc, coalesce(total, 0) desc, rule_id
    limit ${limit}`);
  return {
    comparedAt: rows[0]?.comparedAt ?? null,
    cells: rows.map(({ comparedAt: _comparedAt, ...cell }) => cell),
  };
}

/** The entries of one hour that a pass over the list has read. */
export interface HourPass {
  readonly pass: number;
  readonly pages: number;
  readonly entries: number;
  /** Epoch ms. */
  readonly readAt: number;
}

const PASSES = 5;

/** Returns what the last passes over the hour's day showed of the hour, newest first. An unchanged page is not counted again. */
export async function readHourPasses(
  db: Queryable,
  { zoneId, startsAt }: Pick<Asked, "zoneId" | "startsAt">,
): Promise<HourPass[]> {
  const day = sql`(${new Date(startsAt)}::timestamptz at time zone 'UTC')::date`;
  const { rows } = await db.execute<{ [Key in keyof HourPass]: HourPass[Key] }>(sql`
    select pass, count(*)::integer as pages, sum((hour ->> 1)::integer)::integer as entries,
      (extract(epoch from max(read_at)) * 1000)::float8 as "readAt"
    from pages, jsonb_array_elements(hours) as hour
    where zone_id = ${zoneId} and day = ${day} and (hour ->> 0)::bigint = ${startsAt}
      and pass > (select coalesce(max(pass), 0) from pages where zone_id = ${zoneId} and day = ${day}) - ${PASSES}
    group by pass order by pass desc`);
  return rows;
}
