import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { HISTORY } from "./reopen-hours.ts";

/** The decision about an hour. */
export interface HourVerdict {
  /** Epoch ms. */
  readonly startsAt: number;
  readonly state: "sealed" | "gap";
  /** The reason of a gap. */
  readonly reason: string | null;
  readonly evidence: unknown;
}

/**
 * Decides undecided hours. A sealed hour and a gap keep their state. Returns the number of hours that this call
 * decided.
 */
export async function decideHours(
  tx: Queryable,
  zoneId: number,
  verdicts: readonly HourVerdict[],
  decidedAtMs: number,
): Promise<number> {
  if (verdicts.length === 0) return 0;
  const given = verdicts.map(({ startsAt, ...verdict }) => ({ ...verdict, starts_at: new Date(startsAt) }));
  const decided = await tx.execute(sql`
    update coverage_windows set state = v.state, sealed_at = ${new Date(decidedAtMs)}, gap_reason = v.reason,
      proof_from = null,
      evidence = v.evidence || case when ${HISTORY} = '[]' then '{}' else jsonb_build_object('history', ${HISTORY}) end
    from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as v(
      starts_at timestamptz, state text, reason text, evidence jsonb)
    where coverage_windows.zone_id = ${zoneId} and coverage_windows.starts_at = v.starts_at
      and coverage_windows.state = 'open'`);
  return decided.rowCount ?? 0;
}

/**
 * Adds to the evidence of sealed hours (epoch ms of their starts) that the last comparison at `atMs` found them
 * complete.
 */
export async function recordLastProof(
  tx: Queryable,
  zoneId: number,
  hours: readonly number[],
  atMs: number,
): Promise<void> {
  const starts = hours.map((hour) => new Date(hour));
  await tx.execute(sql`
    update coverage_windows set evidence = evidence || jsonb_build_object('lastProofAt', ${new Date(atMs).toISOString()}::text)
    where zone_id = ${zoneId} and starts_at = any(${sql.param(starts)}::timestamptz[]) and state = 'sealed'
      and not evidence ? 'lastProofAt'`);
}
