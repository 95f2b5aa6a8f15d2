import { and, eq, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
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
  const decided = await tx
    .update(coverageWindows)
    .set({
      state: sql`v.state`,
      sealedAt: new Date(decidedAtMs),
      gapReason: sql`v.reason`,
      proofFrom: null,
      evidence: sql`v.evidence
        || case when ${HISTORY} = '[]' then '{}' else jsonb_build_object('history', ${HISTORY}) end`,
    })
    .from(sql`jsonb_to_recordset(${JSON.stringify(given)}::jsonb)
      as v(starts_at timestamptz, state text, reason text, evidence jsonb)`)
    .where(
      and(
        eq(coverageWindows.zoneId, zoneId),
        eq(coverageWindows.startsAt, sql`v.starts_at`),
        eq(coverageWindows.state, "open"),
      ),
    );
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
  const { zoneId: zone, startsAt, state, evidence } = coverageWindows;
  const proof = sql`jsonb_build_object('lastProofAt', ${new Date(atMs).toISOString()}::text)`;
  await tx
    .update(coverageWindows)
    .set({ evidence: sql`${evidence} || ${proof}` })
    .where(sql`${zone} = ${zoneId} and ${startsAt} = any(${sql.param(starts)}::timestamptz[])
      and ${state} = 'sealed' and not ${evidence} ? 'lastProofAt'`);
}
