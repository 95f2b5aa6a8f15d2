import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";

const { zoneId: zone, startsAt: start, state, evidence, reopenedAt } = coverageWindows;

/** A seal is withdrawn only while the platform still serves the hour. After that the seal is final. */
export const REOPENED_FOR_MS = 72 * 3_600_000;

export const LATE_EVENT = "An event was stored after the seal.";

/**
 * Returns the assignments to coverage_windows that withdraw the seal of the rows of an `update` or upsert for which
 * `isReopened` holds.
 */
export function reopening(isReopened: SQL, at: Date, reason: string): SQL {
  const keep = (column: PgColumn, value: SQL) =>
    sql`${names(column)} = case when ${isReopened} then ${value} else ${column} end`;
  return sql.join(
    [
      keep(coverageWindows.state, sql`'open'`),
      keep(coverageWindows.sealedAt, sql`null`),
      keep(coverageWindows.reopenedAt, sql`${at}::timestamptz`),
      keep(coverageWindows.reopenReason, sql`${reason}::text`),
      keep(
        evidence,
        sql`jsonb_build_object('history', ${HISTORY} || jsonb_build_array(
        (${evidence} - 'history') || jsonb_build_object('event', 'sealed', 'at', ${coverageWindows.sealedAt}),
        jsonb_build_object('event', 'reopened', 'at', ${at.toISOString()}::text, 'reason', ${reason}::text)))`,
      ),
    ],
    sql`, `,
  );
}

/** The seals and reopenings before the current evidence, oldest first. Empty for an hour that was never reopened. */
export const HISTORY = sql`coalesce(${evidence}->'history', '[]')`;

export interface HourToReopen {
  /** Epoch ms. */
  readonly startsAt: number;
  readonly reason: string;
}

/** Withdraws the seals of those hours that are sealed. Looks from before `atMs` prove nothing. Returns these hours. */
export async function reopenHours(
  tx: Queryable,
  zoneId: number,
  hours: readonly HourToReopen[],
  atMs: number,
): Promise<number[]> {
  const reopened: number[] = [];
  const at = new Date(atMs);
  for (const { startsAt, reason } of [...hours].sort((a, b) => a.startsAt - b.startsAt)) {
    const { rowCount } = await tx.execute(sql`
      update ${coverageWindows} set ${reopening(sql`true`, at, reason)}, ${names(coverageWindows.proofFrom)} = ${at}
      where ${zone} = ${zoneId} and ${start} = ${new Date(startsAt)} and ${state} = 'sealed'
        and ${start} > ${new Date(atMs - REOPENED_FOR_MS)}`);
    if (rowCount === 1) reopened.push(startsAt);
  }
  return reopened;
}

/** An hour whose seal was withdrawn and that is not sealed again; times in epoch ms. */
interface ReopenedHour {
  readonly zoneId: number;
  readonly startsAt: number;
  readonly reopenedAt: number;
  readonly reason: string;
}

/** Returns the reopened hours of these zones, by zone and time. */
export function readReopenedHours(db: Queryable, zoneIds: readonly number[]): Promise<ReopenedHour[]> {
  return db
    .select({
      zoneId: zone,
      startsAt: epochMs(start),
      reopenedAt: epochMs(sql`${reopenedAt}`),
      reason: sql<string>`${coverageWindows.reopenReason}`,
    })
    .from(coverageWindows)
    .where(
      sql`${zone} = any(${sql.param([...zoneIds])}::integer[]) and ${state} = 'open' and ${reopenedAt} is not null`,
    )
    .orderBy(zone, start);
}
