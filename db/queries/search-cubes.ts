import { type SQL, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

export interface CubeDay {
  readonly zoneId: number;
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
}

/** The dimensions that are counted in advance, as columns of both waf_events and event_cubes. */
const COLUMNS = ["feature", "rule_id", "asn", "country", "action"] as const;
const TABLES = ["event_cubes", "day_groups", "minute_strips"] as const;
/** A cube of more cells than this share of its events saves nothing: it is not kept. Small ones always are. */
const MAX_SHARE = 0.5;
const SMALL = 1_000;
/** A value's groups and strips take the room of a few events: a dimension with more values than this share has none. */
const MAX_VALUES_SHARE = 0.05;
const FEW_VALUES = 100;

/** Closed days whose counts are missing or out of date, newest first. */
export async function listStaleCubeDays(db: Queryable, limit: number): Promise<CubeDay[]> {
  const found = await db.execute<{ zoneId: number; day: string }>(sql`
    select zone_id as "zoneId", to_char(day, 'YYYY-MM-DD') as day from cube_days
    where built_marks is distinct from marks order by cube_days.day desc, zone_id limit ${limit}`);
  return found.rows;
}

/** All events of each minute of a day that was counted; empty where its minutes are not kept. */
export async function readMinuteTotals(db: Queryable, { zoneId, day }: CubeDay): Promise<number[]> {
  const found = await db.execute<{ width: number; counts: Buffer }>(sql`
    select width, counts from minute_strips
    where zone_id = ${zoneId} and day = ${day}::date and dimension = 'action'`);
  if (found.rows.length === 0) return [];
  return Array.from({ length: 1_440 }, (_, minute) =>
    found.rows.reduce((sum, { width, counts }) => sum + counts.readUIntBE(minute * width, width), 0),
  );
}

/** Forgets the counts of days whose events are gone. */
export async function deleteCubesBefore(db: Queryable, day: string): Promise<void> {
  for (const table of [...TABLES, "cube_days"]) {
    await db.execute(sql`delete from ${sql.identifier(table)} where day < ${day}::date`);
  }
}

/**
 * Counts one day of one zone anew; false when it is up to date or another transaction has it. Needs a transaction at
 * READ COMMITTED. The day's row is locked first: an event that commits later waits for this transaction with its mark,
 * one that committed earlier is seen by every statement here, together with its mark.
 */
export async function buildCubeDay(tx: Queryable, { zoneId, day }: CubeDay): Promise<boolean> {
  const mine = sql`zone_id = ${zoneId} and day = ${day}::date`;
  const taken = await tx.execute(sql`
    select 1 from cube_days where ${mine} and built_marks is distinct from marks for update skip locked`);
  if (taken.rows.length === 0) return false;
  await tx.execute(sql`select set_config('jit', 'off', true), set_config('work_mem', '64MB', true)`);
  for (const table of TABLES) await tx.execute(sql`delete from ${sql.identifier(table)} where ${mine}`);
  const cells = await insertCells(tx, zoneId, day);
  if (cells === null) return true;
  const dimensions = await keepDimensions(tx, zoneId, day);
  await insertGroups(tx, zoneId, day, dimensions);
  await insertStrips(tx, zoneId, day, dimensions);
  return true;
}

function eventsOf(zoneId: number, day: string): SQL {
  return sql`waf_events e where e.zone_id = ${zoneId}
    and e.occurred_at >= ${`${day}T00:00:00Z`}::timestamptz
    and e.occurred_at < ${`${day}T00:00:00Z`}::timestamptz + interval '24 hours'`;
}

/** The number of cells; null where they are not kept. */
async function insertCells(tx: Queryable, zoneId: number, day: string): Promise<number | null> {
  const texts = sql.raw(COLUMNS.map((column) => `coalesce(e.${column}, '') as ${column}`).join(", "));
  const counted = await tx.execute<{ cells: number | null }>(sql`
    with cells as materialized (
      select ${texts}, count(*) as total, min(e.occurred_at) as first_at, max(e.occurred_at) as last_at
      from ${eventsOf(zoneId, day)} group by 1, 2, 3, 4, 5),
    size as (
      select coalesce(sum(total), 0) as total, case when count(*) <= greatest(${SMALL}, sum(total) * ${MAX_SHARE}::float8)
        or count(*) = 0 then count(*) end as cells from cells),
    inserted as (
      insert into event_cubes (zone_id, day, cell, total, first_at, last_at, ${sql.raw(COLUMNS.join(", "))})
      select ${zoneId}, ${day}::date, row_number() over (), c.total, first_at, last_at, ${sql.raw(COLUMNS.join(", "))}
      from cells c cross join size where size.cells is not null)
    update cube_days d set built_marks = marks, built_at = now(), total = size.total, cells = size.cells
    from size where d.zone_id = ${zoneId} and d.day = ${day}::date returning d.cells`);
  return counted.rows[0]?.cells ?? null;
}

/** The dimensions with few enough values. */
async function keepDimensions(tx: Queryable, zoneId: number, day: string): Promise<string[]> {
  const kept = await tx.execute<{ dimensions: string[] }>(sql`
    update cube_days d set dimensions = array(
      select dimension from event_cubes c cross join lateral (values ${valuesOf("c")}) v(dimension, value)
      where c.zone_id = d.zone_id and c.day = d.day
      group by dimension having count(distinct value) <= greatest(${FEW_VALUES}, d.total * ${MAX_VALUES_SHARE}::float8))
    where zone_id = ${zoneId} and day = ${day}::date returning dimensions`);
  return kept.rows[0]?.dimensions ?? [];
}

async function insertGroups(
  tx: Queryable,
  zoneId: number,
  day: string,
  dimensions: readonly string[],
): Promise<void> {
  await tx.execute(sql`
    with pairs as (
      select v.dimension, v.value, o.kind, o.text, sum(c.total) as total, min(c.first_at) as first_at,
        max(c.last_at) as last_at
      from event_cubes c cross join lateral (values ${valuesOf("c")}) v(dimension, value)
      cross join lateral (values ${valuesOf("c")}) o(kind, text)
      where c.zone_id = ${zoneId} and c.day = ${day}::date and v.dimension = any(${sql.param(dimensions)}::text[])
      group by 1, 2, 3, 4),
    kinds as (
      select dimension, value, kind, json_object_agg(text, total) as tally, sum(total) as total,
        min(first_at) as first_at, max(last_at) as last_at from pairs group by 1, 2, 3)
    insert into day_groups (zone_id, day, dimension, value, total, first_at, last_at, tallies)
    select ${zoneId}, ${day}::date, dimension, value, max(total), min(first_at), max(last_at), json_object_agg(kind, tally)
    from kinds group by dimension, value`);
}

/** The dimensions of a row as pairs of name and text. */
function valuesOf(alias: string): SQL {
  return sql.raw(COLUMNS.map((column) => `('${column}', coalesce(${alias}.${column}, ''))`).join(", "));
}

async function insertStrips(
  tx: Queryable,
  zoneId: number,
  day: string,
  dimensions: readonly string[],
): Promise<void> {
  const texts = sql.raw(COLUMNS.join(", "));
  await tx.execute(sql`
    with minutes as (
      select dimension, value, (extract(epoch from e.at)::bigint % 86400) / 60 as minute, sum(n)::bigint as total
      from (select ${texts}, date_trunc('minute', e.occurred_at) as at, count(*) as n
            from ${eventsOf(zoneId, day)} group by 1, 2, 3, 4, 5, 6) e
      cross join lateral (values ${valuesOf("e")}) v(dimension, value)
      where dimension = any(${sql.param(dimensions)}::text[]) group by 1, 2, 3),
    widths as (
      select dimension, value, case when max(total) < 256 then 1 when max(total) < 65536 then 2 else 4 end as width
      from minutes group by 1, 2),
    -- A union, not a join: the planner knows nothing of either side and would compare each with each.
    whole as (
      select dimension, value, minute, max(width) as width, sum(total)::bigint as total from (
        select dimension, value, minute, 0 as width, total from minutes
        union all select dimension, value, every, width, 0 from widths cross join generate_series(0, 1439) every) m
      group by 1, 2, 3)
    insert into minute_strips (zone_id, day, dimension, value, width, counts)
    select ${zoneId}, ${day}::date, dimension, value, max(width),
      decode(string_agg(lpad(to_hex(total), 2 * width, '0'), '' order by minute), 'hex')
    from whole group by dimension, value`);
}
