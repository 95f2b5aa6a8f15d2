import { type SQL, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

/** A seal is withdrawn only while the platform still serves the hour. After that the seal is final. */
export const REOPENED_FOR_MS = 72 * 3_600_000;

export const LATE_EVENT = "An event was stored after the seal.";

/**
 * Returns the assignments to coverage_windows that withdraw the seal of the rows of an `update` or upsert for which
 * `isReopened` holds.
 */
export function reopening(isReopened: SQL, at: Date, reason: string): SQL {
  const keep = (column: string, value: SQL) =>
    sql`${sql.raw(column)} = case when ${isReopened} then ${value} else coverage_windows.${sql.raw(column)} end`;
  return sql.join(
    [
      keep("state", sql`'open'`),
      keep("sealed_at", sql`null`),
      keep("reopened_at", sql`${at}::timestamptz`),
      keep("reopen_reason", sql`${reason}::text`),
      keep(
        "evidence",
        sql`jsonb_build_object('history', ${HISTORY} || jsonb_build_array(
        (coverage_windows.evidence - 'history') || jsonb_build_object('event', 'sealed', 'at', coverage_windows.sealed_at),
        jsonb_build_object('event', 'reopened', 'at', ${at.toISOString()}::text, 'reason', ${reason}::text)))`,
      ),
    ],
    sql`, `,
  );
}

/** The seals and reopenings before the current evidence, oldest first. Empty for an hour that was never reopened. */
export const HISTORY = sql`coalesce(coverage_windows.evidence->'history', '[]')`;

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
      update coverage_windows set ${reopening(sql`true`, at, reason)}, proof_from = ${at}
      where zone_id = ${zoneId} and starts_at = ${new Date(startsAt)} and state = 'sealed'
        and starts_at > ${new Date(atMs - REOPENED_FOR_MS)}`);
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
export async function readReopenedHours(db: Queryable, zoneIds: readonly number[]): Promise<ReopenedHour[]> {
  const { rows } = await db.execute<{ [Key in keyof ReopenedHour]: ReopenedHour[Key] }>(sql`
    select zone_id as "zoneId", (extract(epoch from starts_at) * 1000)::float8 as "startsAt",
      (extract(epoch from reopened_at) * 1000)::float8 as "reopenedAt", reopen_reason as reason
    from coverage_windows
    where zone_id = any(${sql.param([...zoneIds])}::integer[]) and state = 'open' and reopened_at is not null
    order by zone_id, starts_at`);
  return rows;
}
