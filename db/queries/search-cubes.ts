import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { createDayTally, type PackedDay, TALLIED_COLUMNS } from "../tally-day.ts";
import { readVarints } from "../varints.ts";

export interface CubeDay {
  readonly zoneId: number;
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
}

const MINUTES = 1_440;
const EVENTS_PER_FETCH = 5_000;

/** Closed days whose counts are missing or out of date, newest first. */
export async function listStaleCubeDays(db: Queryable, limit: number): Promise<CubeDay[]> {
  const found = await db.execute<{ zoneId: number; day: string }>(sql`
    select zone_id as "zoneId", to_char(day, 'YYYY-MM-DD') as day from cube_days
    where built_marks is distinct from marks order by cube_days.day desc, zone_id limit ${limit}`);
  return found.rows;
}

/** All events of each minute of a day, as they were counted last. */
export async function readMinuteTotals(db: Queryable, { zoneId, day }: CubeDay): Promise<number[]> {
  const found = await db.execute<{ minutes: Buffer | null }>(sql`
    select minutes from cube_days where zone_id = ${zoneId} and day = ${day}::date`);
  const minutes = found.rows[0]?.minutes ?? Buffer.alloc(0);
  const pairs = new Float64Array(minutes.length);
  const count = readVarints(minutes, 0, minutes.length, pairs);
  const totals = Array.from({ length: MINUTES }, () => 0);
  for (let at = 0, minute = 0; at < count; at += 2, minute++) {
    minute += pairs[at] as number;
    totals[minute] = pairs[at + 1] as number;
  }
  return totals;
}

/** Forgets the counts of days whose events are gone. */
export async function deleteCubesBefore(db: Queryable, day: string): Promise<void> {
  for (const table of ["day_tallies", "cube_days"]) {
    await db.execute(sql`delete from ${sql.identifier(table)} where day < ${day}::date`);
  }
}

/**
 * Counts one day of one zone anew; false when it is up to date or another transaction has it. Needs a transaction at
 * READ COMMITTED. The day's row is locked first: an event that commits later waits for this transaction with its mark,
 * one that committed earlier is seen by the one statement that reads them, together with its mark.
 */
export async function buildCubeDay(tx: Queryable, { zoneId, day }: CubeDay): Promise<boolean> {
  const mine = sql`zone_id = ${zoneId} and day = ${day}::date`;
  const taken = await tx.execute(sql`
    select 1 from cube_days where ${mine} and built_marks is distinct from marks for update skip locked`);
  if (taken.rows.length === 0) return false;
  const { total, minutes, dimensions } = await packDay(tx, zoneId, day);
  await tx.execute(sql`delete from day_tallies where ${mine}`);
  if (total > 0) {
    for (const { dimension, texts, heads, tallies, minutes: ofValues } of dimensions) {
      await tx.execute(sql`
        insert into day_tallies (zone_id, day, dimension, texts, heads, tallies, minutes)
        values (${zoneId}, ${day}::date, ${dimension}, ${JSON.stringify(texts)}::json, ${heads}, ${tallies}, ${ofValues})`);
    }
  }
  await tx.execute(sql`
    update cube_days set built_marks = marks, built_at = now(), total = ${total}, minutes = ${minutes} where ${mine}`);
  return true;
}

async function packDay(tx: Queryable, zoneId: number, day: string): Promise<PackedDay> {
  const midnight = `${day}T00:00:00Z`;
  const texts = sql.raw(TALLIED_COLUMNS.map((column) => `coalesce(${column}, '') as ${column}`).join(", "));
  await tx.execute(sql`
    declare day_events no scroll cursor for
    select ${texts}, (extract(epoch from occurred_at - ${midnight}::timestamptz) * 1000)::integer as ms
    from waf_events where zone_id = ${zoneId} and occurred_at >= ${midnight}::timestamptz
      and occurred_at < ${midnight}::timestamptz + interval '24 hours'`);
  const tally = createDayTally();
  for (;;) {
    const { rows } = await tx.execute<Record<(typeof TALLIED_COLUMNS)[number], string> & { ms: number }>(
      sql`fetch forward ${sql.raw(String(EVENTS_PER_FETCH))} from day_events`,
    );
    for (const row of rows) {
      tally.add(
        TALLIED_COLUMNS.map((column) => row[column]),
        row.ms,
      );
    }
    if (rows.length < EVENTS_PER_FETCH) break;
  }
  await tx.execute(sql`close day_events`);
  return tally.pack();
}
