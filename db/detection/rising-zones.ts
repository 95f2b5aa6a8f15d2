import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { RisingZone } from "#model/rising-zone.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { platformHealth } from "../schema/platform-health.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";
import { spikes } from "../schema/spikes.ts";

const h = alias(platformHealth, "h");
const w = alias(coverageWindows, "w");
const b = alias(ruleBuckets, "b");
const s = alias(spikes, "s");

/** Longer than the pause between two looks of the detector. */
const RISING_MS = 60_000;

const at = (ms: number) => sql`to_timestamp(${ms}::float8 / 1000)`;

/** Returns whether something of the zone is near its threshold, or has lately become a spike. */
function isRisingAt(nowMs: number): SQL {
  return sql`(${h.risingUntil} > ${at(nowMs)} or exists (select from ${spikes} ${s}
    where ${s.zoneId} = ${h.zoneId} and ${s.openedAt} > ${at(nowMs)} - interval '15 minutes'))`;
}

/** Stores that something rises in the zones. Every look finds the same zones, so only what ends soon is written. */
export async function noteRising(db: Queryable, zoneIds: readonly number[], nowMs: number): Promise<void> {
  if (zoneIds.length === 0) return;
  // Locked in the order of zones, because another replica may write the same ones.
  await db.execute(sql`
    with ending as materialized (
      select ${h.zoneId} from ${platformHealth} ${h} where ${h.zoneId} = any (${sql.param(zoneIds)}::integer[])
        and coalesce(${h.risingUntil} < ${at(nowMs + RISING_MS / 2)}, true)
      order by ${h.zoneId} for no key update)
    update ${platformHealth} ${h} set ${names(h.risingUntil)} = ${at(nowMs + RISING_MS)}
    from ending where ${h.zoneId} = ending.zone_id`);
}

export async function isRising(db: Queryable, zoneId: number, nowMs: number): Promise<boolean> {
  const { rows } = await db.execute(sql`
    select from ${platformHealth} ${h} where ${h.zoneId} = ${zoneId} and ${isRisingAt(nowMs)}`);
  return rows.length > 0;
}

/**
 * Returns those of the zones in which something rises, the one first whose search is the oldest. Leaves out a zone that
 * the platform refuses: it would always be the first.
 */
export async function listRisingZones(
  db: Queryable,
  zoneIds: readonly number[],
  nowMs: number,
): Promise<RisingZone[]> {
  const { rows } = await db.execute<RisingZone & Record<string, unknown>>(sql`
    select ${h.zoneId} as "zoneId",
      (select ${epochMs(sql`max(${w.searchedThrough})`)} from ${coverageWindows} ${w}
        where ${w.zoneId} = ${h.zoneId} and ${w.startsAt} > ${at(nowMs)} - interval '2 hours') as "searchedThroughMs",
      (select coalesce(sum(${b.total}), 0)::float8 from ${ruleBuckets} ${b} where ${b.zoneId} = ${h.zoneId}
        and ${b.width} = 60 and ${b.startsAt} > ${at(nowMs)} - interval '3 minutes') as events
    from ${platformHealth} ${h} where ${h.zoneId} = any (${sql.param(zoneIds)}::integer[]) and ${isRisingAt(nowMs)}
      and coalesce(${h.refusedSince} <= ${h.answeredAt}, ${h.refusedSince} is null)
    order by "searchedThroughMs" nulls first, ${h.zoneId}`);
  return rows;
}
