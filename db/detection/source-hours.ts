import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { toDay } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { sourceHours, sourceUsual } from "../schema/sources.ts";

const h = alias(sourceHours, "h");
const u = alias(sourceUsual, "u");
const w = alias(coverageWindows, "w");
const excluded = alias(sourceUsual, "excluded");

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

/** One hour of one zone. */
export interface ZoneHourKey {
  readonly zoneId: number;
  readonly hour: number;
}

export interface CountedSourceHour extends ZoneHourKey {
  /** The number of marks before the events were read. */
  readonly marks: number;
  readonly known: string;
  readonly peaks: readonly number[];
}

/** The largest counts of an address on a UTC day, which is numbered since the epoch. */
export interface AddressPeaks {
  readonly zoneId: number;
  readonly day: number;
  readonly address: string;
  readonly peaks: ArrayLike<number>;
}

/** Returns the rows of zones from `fromHour` on, oldest first. */
export async function readSourceHours(
  db: Queryable,
  zoneIds: readonly number[],
  fromHour: number,
): Promise<ReadonlyMap<number, readonly SourceHour[]>> {
  // One text per zone: a row and an array for every hour would take the driver ten times as long.
  const { rows } = await db.execute<{ zoneId: number; hours: string }>(sql`
    select ${h.zoneId} as "zoneId",
      string_agg('[' || concat_ws(',', (date_part('epoch', ${h.startsAt}) / 3600)::integer, ${h.marks},
        ${h.isStale}::integer, '"' || ${h.known} || '"', array_to_string(${h.peaks}, ',')) || ']', ','
        order by ${h.startsAt}) as hours
    from ${sourceHours} ${h} where ${h.zoneId} = any(${sql.param(zoneIds)}::integer[])
      and ${h.startsAt} >= to_timestamp(${fromHour}::float8 * 3600)
    group by ${h.zoneId}`);
  return new Map(
    rows.map(({ zoneId, hours }) => [zoneId, (JSON.parse(`[${hours}]`) as HourColumns[]).map(toSourceHour)]),
  );
}

/** A fingerprint of known sources is empty or hexadecimal, so JSON needs no escapes for it. */
type HourColumns = [hour: number, marks: number, isStale: number, known: string, ...peaks: number[]];

function toSourceHour([hour, marks, isStale, known, ...peaks]: HourColumns): SourceHour {
  return { hour, marks, isStale: isStale === 1, known, peaks: peaks.length === 0 ? null : peaks };
}

/** Returns how many events are stored of hours, in the same order. Whoever stores an event counts it. */
export async function readStoredCounts(db: Queryable, hours: readonly ZoneHourKey[]): Promise<number[]> {
  const { rows } = await db.execute<{ events: number }>(sql`
    select coalesce(${w.storedCount}, 0) as events
    from unnest(${sql.param(hours.map(({ zoneId }) => zoneId))}::integer[],
      ${sql.param(hours.map(({ hour }) => hour))}::integer[]) with ordinality as asked(zone_id, hour, place)
    left join ${coverageWindows} ${w} on ${w.zoneId} = asked.zone_id
      and ${w.startsAt} = to_timestamp(asked.hour::float8 * 3600)
    order by place`);
  return rows.map(({ events }) => events);
}

/** Returns a text for each zone that changes when an hour of [fromHour, toHour) was counted again. */
export async function readHourVersions(
  db: Queryable,
  zoneIds: readonly number[],
  { fromHour, toHour }: { fromHour: number; toHour: number },
): Promise<ReadonlyMap<number, string>> {
  const { rows } = await db.execute<{ zoneId: number; version: string }>(sql`
    select ${h.zoneId} as "zoneId", sum(${h.marks}) || '/' || count(*) filter (where ${h.isStale}) as version
    from ${sourceHours} ${h} where ${h.zoneId} = any(${sql.param(zoneIds)}::integer[])
      and ${h.startsAt} >= to_timestamp(${fromHour}::float8 * 3600)
      and ${h.startsAt} < to_timestamp(${toHour}::float8 * 3600)
    group by ${h.zoneId}`);
  return new Map(rows.map(({ zoneId, version }) => [zoneId, version]));
}

/** Adds rows for hours that shall be counted, before their events are read: a later event then finds a row to mark. */
export async function addSourceHours(db: Queryable, hours: readonly ZoneHourKey[]): Promise<void> {
  if (hours.length === 0) return;
  await db.execute(sql`
    insert into ${sourceHours} (${names(h.zoneId, h.startsAt)})
    select zone_id, to_timestamp(hour::float8 * 3600)
    from unnest(${sql.param(hours.map(({ zoneId }) => zoneId))}::integer[],
      ${sql.param(hours.map(({ hour }) => hour))}::integer[]) as asked(zone_id, hour)
    on conflict do nothing`);
}

/**
 * Stores counted hours and the peaks of their addresses. An hour stays stale if it was marked since `marks` was read.
 * A day's peak never falls, because events are only added.
 */
export async function storeSourceHours(
  tx: Queryable,
  hours: readonly CountedSourceHour[],
  addresses: readonly AddressPeaks[],
): Promise<void> {
  const column = <T>(read: (one: CountedSourceHour) => T) => sql.param(hours.map(read));
  await tx.execute(sql`
    update ${sourceHours} ${h} set ${names(h.peaks)} = c.peaks::integer[], ${names(h.known)} = c.known,
      ${names(h.isStale)} = ${h.marks} <> c.marks
    from unnest(${column(({ zoneId }) => zoneId)}::integer[], ${column(({ hour }) => hour)}::integer[],
      ${column(({ marks }) => marks)}::integer[], ${column(({ known }) => known)}::text[],
      ${column(({ peaks }) => `{${peaks.join()}}`)}::text[]) as c(zone_id, hour, marks, known, peaks)
    where ${h.zoneId} = c.zone_id and ${h.startsAt} = to_timestamp(c.hour::float8 * 3600)`);
  if (addresses.length === 0) return;
  const field = <T>(read: (one: AddressPeaks) => T) => sql.param(addresses.map(read));
  const peak = (place: number) => field(({ peaks }) => peaks[place] ?? 0);
  await tx.execute(sql`
    insert into ${sourceUsual} as ${u} (${names(u.zoneId, u.day, u.address, u.peak3, u.peak15, u.peak60)})
    select zone_id, date '1970-01-01' + day, address, peak3, peak15, peak60
    from unnest(${field(({ zoneId }) => zoneId)}::integer[], ${field(({ day }) => day)}::integer[],
      ${field(({ address }) => address)}::text[], ${peak(0)}::integer[], ${peak(1)}::integer[],
      ${peak(2)}::integer[]) as a(zone_id, day, address, peak3, peak15, peak60)
    order by zone_id, day, address collate "C"
    on conflict (${names(u.zoneId, u.day, u.address)}) do update
    set ${names(u.peak3)} = greatest(${u.peak3}, ${excluded.peak3}),
      ${names(u.peak15)} = greatest(${u.peak15}, ${excluded.peak15}),
      ${names(u.peak60)} = greatest(${u.peak60}, ${excluded.peak60})
    where (${excluded.peak3}, ${excluded.peak15}, ${excluded.peak60})
      is distinct from (${u.peak3}, ${u.peak15}, ${u.peak60})`);
}

/**
 * Returns the daily peaks of the addresses of zones on the days [fromDay, toDay), which are numbered since the epoch.
 * Leaves out an address that has fewer days than `atLeast`.
 */
export async function readSourceUsual(
  db: Queryable,
  zoneIds: readonly number[],
  { fromDay, toDay, atLeast = 1 }: { fromDay: number; toDay: number; atLeast?: number },
): Promise<AddressDays[]> {
  const { rows } = await db.execute<{ zoneId: number; address: string; days: AddressDays["days"] }>(sql`
    select ${u.zoneId} as "zoneId", ${u.address},
      json_agg(json_build_array(${u.day} - date '1970-01-01', ${u.peak3}, ${u.peak15}, ${u.peak60})) as days
    from ${sourceUsual} ${u} where ${u.zoneId} = any(${sql.param(zoneIds)}::integer[])
      and ${u.day} >= date '1970-01-01' + ${fromDay}::integer and ${u.day} < date '1970-01-01' + ${toDay}::integer
    group by ${u.zoneId}, ${u.address} having count(*) >= ${atLeast}`);
  return rows;
}

export interface AddressDays {
  readonly zoneId: number;
  readonly address: string;
  readonly days: readonly (readonly [day: number, peak3: number, peak15: number, peak60: number])[];
}

/** Takes the days of [from, to] out of what is usual for an address. */
export async function forgetSourceDays(
  tx: Queryable,
  zoneId: number,
  { address, from, to }: { address: string; from: Date; to: Date },
): Promise<void> {
  await tx.execute(sql`
    delete from ${sourceUsual} ${u} where ${u.zoneId} = ${zoneId} and ${u.address} = ${address}
      and ${u.day} between ${toDay(from.getTime())}::date and ${toDay(to.getTime())}::date`);
}
