import { and, asc, eq, inArray, sql } from "drizzle-orm";
import type { HourLooks } from "#model/look.ts";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";

const KEY = names(coverageWindows.zoneId, coverageWindows.startsAt);

/**
 * Returns the looks of these hours (epoch ms of their starts), locked until the commit. Inserts a row for an hour
 * without one.
 */
export async function lockLooks(
  tx: Queryable,
  zoneId: number,
  hours: readonly number[],
): Promise<Map<number, HourLooks>> {
  if (hours.length === 0) return new Map();
  const starts = hours.map((hour) => new Date(hour));
  await tx.execute(sql`
    insert into ${coverageWindows} (${KEY})
    select ${zoneId}, hour from unnest(${sql.param(starts)}::timestamptz[]) as hour order by hour
    on conflict (${KEY}) do nothing`);
  const rows = await tx
    .select({ startsAt: coverageWindows.startsAt, looks: coverageWindows.looks })
    .from(coverageWindows)
    .where(and(eq(coverageWindows.zoneId, zoneId), inArray(coverageWindows.startsAt, starts)))
    .orderBy(asc(coverageWindows.startsAt))
    .for("update");
  return new Map(rows.map(({ startsAt, looks }) => [startsAt.getTime(), looks]));
}

/** Stores the looks of hours whose rows are locked. */
export async function writeLooks(
  tx: Queryable,
  zoneId: number,
  looks: ReadonlyMap<number, HourLooks>,
): Promise<void> {
  if (looks.size === 0) return;
  const given = [...looks].map(([startsAt, value]) => ({ starts_at: new Date(startsAt), looks: value }));
  const { zoneId: zone, startsAt: start, looks: stored } = coverageWindows;
  await tx
    .update(coverageWindows)
    .set({ looks: sql`g.looks` })
    .from(sql`jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g(starts_at timestamptz, looks jsonb)`)
    .where(sql`${zone} = ${zoneId} and ${start} = g.starts_at and ${stored} <> g.looks`);
}
