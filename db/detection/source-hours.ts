import { sql } from "drizzle-orm";
import { HOUR_MS } from "../../src/lib/units.ts";
import { toDay } from "../../src/model/horizon.ts";
import type { Queryable } from "../client.ts";

export interface SourceHour {
  /** Since the epoch. */
  readonly hour: number;
  readonly marks: number;
  readonly isStale: boolean;
  /** The fingerprint of the known sources that were left out. */
  readonly known: string;
  /** Null until the hour is counted. */
  readonly peaks: readonly number[] | null;
}

/** Returns a zone's rows from `fromHour` on, oldest first. */
export async function readSourceHours(
  db: Queryable,
  zoneId: number,
  fromHour: number,
): Promise<SourceHour[]> {
  const { rows } = await db.execute<SourceHour & Record<string, unknown>>(sql`
    select (extract(epoch from starts_at) / 3600)::integer as hour, marks, is_stale as "isStale", known, peaks
    from source_hours where zone_id = ${zoneId} and starts_at >= to_timestamp(${fromHour}::float8 * 3600)
    order by starts_at`);
  return rows;
}

/** Adds rows for hours that shall be counted, before their events are read: a later event then finds a row to mark. */
export async function addSourceHours(db: Queryable, zoneId: number, hours: readonly number[]): Promise<void> {
  if (hours.length === 0) return;
  await db.execute(sql`
    insert into source_hours (zone_id, starts_at)
    select ${zoneId}, to_timestamp(hour::float8 * 3600) from unnest(${sql.param(hours)}::integer[]) as hour
    on conflict do nothing`);
}

/**
 * Stores a counted hour and the peaks of its addresses. The hour stays stale if it was marked since `marks` was read.
 * A day's peak never falls, because events are only added.
 */
export async function storeSourceHour(
  tx: Queryable,
  zoneId: number,
  { hour, marks }: Pick<SourceHour, "hour" | "marks">,
  {
    peaks,
    addresses,
    known,
  }: {
    readonly known: string;
    readonly peaks: readonly number[];
    readonly addresses: ReadonlyMap<string, ArrayLike<number>>;
  },
): Promise<void> {
  await tx.execute(sql`
    update source_hours set peaks = ${sql.param(peaks)}::integer[], known = ${known}, is_stale = marks <> ${marks}
    where zone_id = ${zoneId} and starts_at = to_timestamp(${hour}::float8 * 3600)`);
  if (addresses.size === 0) return;
  const keys = [...addresses.keys()].sort();
  const column = (place: number) => sql.param(keys.map((key) => addresses.get(key)?.[place] ?? 0));
  await tx.execute(sql`
    insert into source_usual as u (zone_id, day, address, peak3, peak15, peak60)
    select ${zoneId}, ${dayOf(hour)}::date, a.* from unnest(${sql.param(keys)}::text[],
      ${column(0)}::integer[], ${column(1)}::integer[], ${column(2)}::integer[]) as a
    on conflict (zone_id, day, address) do update set peak3 = greatest(u.peak3, excluded.peak3),
      peak15 = greatest(u.peak15, excluded.peak15), peak60 = greatest(u.peak60, excluded.peak60)`);
}

/** Returns the daily peaks of a zone's addresses on the days [fromDay, toDay), which are numbered since the epoch. */
export async function readSourceUsual(
  db: Queryable,
  zoneId: number,
  { fromDay, toDay }: { fromDay: number; toDay: number },
): Promise<{ address: string; day: number; peaks: readonly number[] }[]> {
  const { rows } = await db.execute<{ address: string; day: number; peaks: number[] }>(sql`
    select address, day - date '1970-01-01' as day, array[peak3, peak15, peak60] as peaks from source_usual
    where zone_id = ${zoneId} and day >= date '1970-01-01' + ${fromDay}::integer
      and day < date '1970-01-01' + ${toDay}::integer`);
  return rows;
}

/** Takes the days of [from, to] out of what is usual for an address. */
export async function forgetSourceDays(
  tx: Queryable,
  zoneId: number,
  { address, from, to }: { address: string; from: Date; to: Date },
): Promise<void> {
  await tx.execute(sql`
    delete from source_usual where zone_id = ${zoneId} and address = ${address}
      and day between ${toDay(from.getTime())}::date and ${toDay(to.getTime())}::date`);
}

function dayOf(hour: number): string {
  return toDay(hour * HOUR_MS);
}
