import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { createDayTally, type DayTally, TALLIED_COLUMNS, type TalliedColumn } from "./tally-day.ts";

export interface CubeDay {
  readonly zoneId: number;
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
}

const EVENTS_PER_FETCH = 5_000;

/** Closed days whose counts are missing or out of date, newest first. */
export async function listStaleCubeDays(db: Queryable, limit: number): Promise<CubeDay[]> {
  const found = await db.execute<{ zoneId: number; day: string }>(sql`
    select zone_id as "zoneId", to_char(day, 'YYYY-MM-DD') as day from cube_days
    where built_marks is distinct from marks order by cube_days.day desc, zone_id limit ${limit}`);
  return found.rows;
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
  const tally = await readDay(tx, zoneId, day);
  const codes: number[][] = [];
  for (const [column, texts] of tally.texts().entries()) {
    codes.push(await toCodes(tx, { zoneId, dimension: TALLIED_COLUMNS[column] as TalliedColumn }, texts));
  }
  const { total, times, dimensions } = tally.pack(codes);
  await tx.execute(sql`delete from day_tallies where ${mine}`);
  for (const { dimension, heads, tallies, codes: ofEvents } of dimensions) {
    await tx.execute(sql`
      insert into day_tallies (zone_id, day, dimension, heads, tallies, codes)
      values (${zoneId}, ${day}::date, ${dimension}, ${heads}, ${tallies}, ${ofEvents})`);
  }
  await tx.execute(sql`
    update cube_days set built_marks = marks, built_at = now(), total = ${total}, times = ${times} where ${mine}`);
  return true;
}

/** The codes of texts; new ones get the next. The row is held until this transaction ends: codes are given once. */
async function toCodes(
  tx: Queryable,
  { zoneId, dimension }: { zoneId: number; dimension: TalliedColumn },
  texts: readonly string[],
): Promise<number[]> {
  const mine = sql`zone_id = ${zoneId} and dimension = ${dimension}`;
  await tx.execute(sql`
    insert into tally_texts (zone_id, dimension, texts) values (${zoneId}, ${dimension}, '[]') on conflict do nothing`);
  const found = await tx.execute<{ texts: string[] }>(
    sql`select texts from tally_texts where ${mine} for update`,
  );
  const known = new Map(found.rows[0]?.texts.map((text, code) => [text, code]));
  const before = known.size;
  for (const text of texts) if (!known.has(text)) known.set(text, known.size);
  if (known.size > before) {
    const all = JSON.stringify([...known.keys()]);
    await tx.execute(sql`update tally_texts set texts = ${all}::json where ${mine}`);
  }
  return texts.map((text) => known.get(text) as number);
}

async function readDay(tx: Queryable, zoneId: number, day: string): Promise<DayTally> {
  const midnight = `${day}T00:00:00Z`;
  const texts = sql.raw(TALLIED_COLUMNS.map((column) => `coalesce(${column}, '') as ${column}`).join(", "));
  await tx.execute(sql`
    declare day_events no scroll cursor for
    select ${texts}, (extract(epoch from occurred_at - ${midnight}::timestamptz) * 1000)::integer as ms
    from waf_events where zone_id = ${zoneId} and occurred_at >= ${midnight}::timestamptz
      and occurred_at < ${midnight}::timestamptz + interval '24 hours' order by occurred_at`);
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
  return tally;
}
