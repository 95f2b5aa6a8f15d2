import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { HOUR_MS } from "#lib/units.ts";
import type { Database } from "../client.ts";
import { TIMELINE } from "../postgres/leases.ts";
import { runPrepared, toPrepared } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { erasures } from "../schema/privacy.ts";
import { ruleBuckets } from "../schema/rules.ts";
import { leases } from "../schema/service.ts";
import { knownSources, sourceHours } from "../schema/sources.ts";
import { spikes } from "../schema/spikes.ts";
import type { HourCoverage } from "./spikes.ts";

const b = alias(ruleBuckets, "b");
const s = alias(spikes, "s");
const h = alias(sourceHours, "h");
const w = alias(coverageWindows, "w");
const x = alias(erasures, "x");

/** Kinds of rows that exist. Most kinds are rare, and a tick reads only those that exist. */
interface Found {
  readonly hasOpen: boolean;
  /** Spikes that closed lately. */
  readonly hasClosed: boolean;
  readonly hasAttacks: boolean;
  readonly hasKnown: boolean;
  /** Changes with every erasure, and with every promotion of a standby. */
  readonly erasures: string;
  /** Zones that have hours to count from their events. */
  readonly stale: readonly number[];
}

interface ZoneRow {
  /** Null if there is no zone. */
  readonly zoneId: number | null;
  /** The coverage of older hours, as `toOldHours` reads it. The text stays the same until one of them changes. */
  readonly old: string | null;
  /** The state of each recent hour, its number since the epoch, and the time that searches have reached (epoch ms). */
  readonly recent: string | null;
  /** The number since the epoch of each minute with events, and how many events the roll-up has counted in it. */
  readonly totals: string | null;
}

export interface ZoneState extends Omit<ZoneRow, "zoneId"> {
  readonly zoneId: number;
}

export interface SourceState extends Found {
  readonly zones: readonly ZoneState[];
}

/** The part of time that a tick reads. */
export interface StateSpan {
  readonly closedAfterMs: number;
  /** Hours of (coveredAfterMs, nowMs] are read, those from `recentHour` on exactly. */
  readonly coveredAfterMs: number;
  readonly nowMs: number;
  readonly recentHour: number;
  readonly staleFromHour: number;
  /** Minutes of which the events are counted, `toMinute` exclusive. */
  readonly fromMinute: number;
  readonly toMinute: number;
}

/** One statement, because each takes longer on its way than in the server. */
const STATE = toPrepared(
  "source-state",
  sql`
    with covered as (
      select zone_id,
        string_agg(left(state, 1) || case when searched_through is null then '0'
          when searched_through < starts_at + interval '1 hour' then '1' else '2' end || hour, ',' order by starts_at)
          filter (where hour < recent) as old,
        string_agg(concat_ws(' ', state, hour, round(date_part('epoch', searched_through) * 1000)::bigint), ','
          order by starts_at) filter (where hour >= recent) as recent
      from (
        select ${w.zoneId}, ${w.startsAt}, ${w.state}, ${w.searchedThrough},
          (date_part('epoch', ${w.startsAt}) / 3600)::integer as hour, ${sql.placeholder("recent")}::integer as recent
        from ${coverageWindows} ${w} where ${w.startsAt} > to_timestamp(${sql.placeholder("covered")}::float8 / 1000)
          and ${w.startsAt} <= to_timestamp(${sql.placeholder("now")}::float8 / 1000)) hours
      group by zone_id),
    counted as (
      select zone_id, string_agg(minute || ' ' || total, ',') as totals
      from (
        select ${b.zoneId}, (date_part('epoch', ${b.startsAt}) / 60)::integer as minute, sum(${b.total}) as total
        from ${ruleBuckets} ${b}
        where ${b.width} = 60 and ${b.startsAt} >= to_timestamp(${sql.placeholder("from")}::float8 * 60)
          and ${b.startsAt} < to_timestamp(${sql.placeholder("to")}::float8 * 60)
        group by 1, 2) minutes
      group by zone_id)
    select f.*, coalesce(covered.zone_id, counted.zone_id) as "zoneId", old, covered.recent, totals
    from (select
      exists(select from ${spikes} ${s} where ${s.closedAt} is null and ${s.kind} = 'sources') as "hasOpen",
      exists(select from ${spikes} ${s} where ${s.kind} = 'sources'
        and ${s.closedAt} > to_timestamp(${sql.placeholder("closed")}::float8 / 1000)) as "hasClosed",
      exists(select from ${spikes} ${s} where ${s.mark} = 'attack' and ${s.kind} = 'sources') as "hasAttacks",
      exists(select from ${knownSources}) as "hasKnown",
      (select concat_ws('/', max(${x.id}), max(${x.untilAt}), count(${x.endedAt}), max(${x.endedAt}),
        (select ${leases.fence} from ${leases} where ${leases.name} = ${sql.raw(`'${TIMELINE}'`)})) from ${erasures} ${x}) as erasures,
      array(select distinct ${h.zoneId} from ${sourceHours} ${h} where ${h.isStale}
        and ${h.startsAt} >= to_timestamp(${sql.placeholder("stale")}::float8 * 3600)) as stale) f
    left join (covered full join counted using (zone_id)) on true`,
);

/** Reads the state of all zones at one moment. */
export async function readSourceState(
  { pool }: Pick<Database, "pool">,
  span: StateSpan,
): Promise<SourceState> {
  const { recentHour, coveredAfterMs, nowMs, fromMinute, toMinute, closedAfterMs, staleFromHour } = span;
  const values = [recentHour, coveredAfterMs, nowMs, fromMinute, toMinute, closedAfterMs, staleFromHour];
  const rows = await runPrepared<Found & ZoneRow>(pool, { ...STATE, values });
  const [found] = rows;
  if (found === undefined) throw new Error("a join to one row returned none");
  return {
    ...found,
    zones: rows.flatMap(({ zoneId, ...zone }) => (zoneId === null ? [] : { ...zone, zoneId })),
  };
}

const STATES: Readonly<Record<string, HourCoverage["state"]>> = { o: "open", s: "sealed", g: "gap" };

/** Returns older hours. Of an hour that was searched in part, only that is known. */
export function toOldHours(old: string | null): HourCoverage[] {
  if (old === null) return [];
  return old.split(",").map((text) => {
    const startsAtMs = Number(text.slice(2)) * HOUR_MS;
    const through = [null, startsAtMs, startsAtMs + HOUR_MS][Number(text[1])] ?? null;
    return { startsAtMs, searchedThroughMs: through, state: STATES[text.charAt(0)] ?? "open" };
  });
}

export function toRecentHours(recent: string | null): HourCoverage[] {
  if (recent === null) return [];
  return recent.split(",").map((text) => {
    const [state, hour, through] = text.split(" ") as [HourCoverage["state"], string, string | undefined];
    const searchedThroughMs = through === undefined ? null : Number(through);
    return { startsAtMs: Number(hour) * HOUR_MS, searchedThroughMs, state };
  });
}

/** Returns the events of minutes, by minute. */
export function toMinuteTotals(totals: string | null): ReadonlyMap<number, number> {
  if (totals === null) return new Map();
  return new Map(totals.split(",").map((text) => text.split(" ").map(Number) as [number, number]));
}
