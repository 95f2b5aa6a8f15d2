import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

/** What was decided about an hour. */
export interface HourVerdict {
  /** Epoch ms. */
  readonly startsAt: number;
  readonly state: "sealed" | "gap";
  /** Of a gap. */
  readonly reason: string | null;
  readonly evidence: unknown;
}

/** Start of the latest full list pass that reached the end, by UTC day (`yyyy-mm-dd`); epoch ms. */
export async function readFullPasses(db: Queryable, zoneId: number): Promise<ReadonlyMap<string, number>> {
  const { rows } = await db.execute<{ day: string; at: number }>(sql`
    select day::text, (extract(epoch from full_pass_started_at) * 1000)::float8 as at
    from ingest_cursors where zone_id = ${zoneId} and full_pass_started_at is not null`);
  return new Map(rows.map(({ day, at }) => [day, at]));
}

/** Decides undecided hours, once: a sealed hour and a gap stay what they are. Returns how many this call decided. */
export async function decideHours(
  tx: Queryable,
  zoneId: number,
  verdicts: readonly HourVerdict[],
  decidedAtMs: number,
): Promise<number> {
  if (verdicts.length === 0) return 0;
  const given = verdicts.map(({ startsAt, ...verdict }) => ({ ...verdict, starts_at: new Date(startsAt) }));
  const decided = await tx.execute(sql`
    update coverage_windows w set state = v.state, sealed_at = ${new Date(decidedAtMs)}, gap_reason = v.reason,
      evidence = v.evidence
    from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as v(
      starts_at timestamptz, state text, reason text, evidence jsonb)
    where w.zone_id = ${zoneId} and w.starts_at = v.starts_at and w.state = 'open'`);
  return decided.rowCount ?? 0;
}
