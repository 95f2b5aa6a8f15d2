import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";

const CHUNK = 500;

/** A resolve for which no channel is notified. */
export interface QuietResolve {
  readonly id: number;
  /** The transition that the caller read. An alert with a later transition is left unchanged. */
  readonly seen: number;
  readonly entry: unknown;
  /** The members of the latest message that change. */
  readonly changed: unknown;
}

/** Resolves alerts without outbox rows, in a few statements. Returns the number of resolved alerts. */
export async function resolveQuietly(
  db: Queryable,
  resolves: readonly QuietResolve[],
  nowMs: number,
): Promise<number> {
  const { transition, transitions, details } = alerts;
  let count = 0;
  for (let start = 0; start < resolves.length; start += CHUNK) {
    const chunk = JSON.stringify(resolves.slice(start, start + CHUNK));
    const { rowCount } = await db
      .update(alerts)
      .set({
        state: "resolved",
        resolvedAt: new Date(nowMs),
        transition: sql`${transition} + 1`,
        transitions: sql`${transitions} || jsonb_build_array(r.entry)`,
        details: sql`case when ${details} ? 'message'
          then jsonb_set(${details}, '{message}', (${details} -> 'message') || r.changed) else ${details} end`,
      })
      .from(
        sql`jsonb_to_recordset(${chunk}::jsonb) as r(id bigint, seen integer, entry jsonb, changed jsonb)`,
      )
      .where(sql`${alerts.id} = r.id and ${transition} = r.seen and ${alerts.state} <> 'resolved'`);
    count += rowCount ?? 0;
  }
  return count;
}
