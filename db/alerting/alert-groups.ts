import { and, asc, eq, inArray, sql } from "drizzle-orm";
import { GROUP_KIND } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { spikes } from "../schema/spikes.ts";
import type { AlertRow, SpikeRow } from "./alerts.ts";

const CHUNK = 500;

export function readOpenGroups(db: Queryable): Promise<AlertRow[]> {
  return db
    .select()
    .from(alerts)
    .where(and(eq(alerts.kind, GROUP_KIND), sql`${alerts.state} <> 'resolved'`))
    .orderBy(asc(alerts.id));
}

/**
 * Locks the spikes for this transaction and returns them as they are now. All locks are taken in the order of ids, so
 * that no deadlock is possible.
 */
export async function lockSpikes(tx: Queryable, ids: readonly number[]): Promise<SpikeRow[]> {
  const rows: SpikeRow[] = [];
  const ordered = ids.toSorted((a, b) => a - b);
  for (let start = 0; start < ordered.length; start += CHUNK) {
    const chunk = ordered.slice(start, start + CHUNK);
    rows.push(
      ...(await tx
        .select()
        .from(spikes)
        .where(inArray(spikes.id, chunk))
        .orderBy(asc(spikes.id))
        .for("no key update")),
    );
  }
  return rows;
}

type NewAlert = Omit<typeof alerts.$inferInsert, "id">;

/**
 * Inserts alerts with a message and sets the alert's id in the message. Leaves an alert that is already open
 * unchanged.
 */
export async function insertAlerts(tx: Queryable, rows: readonly NewAlert[]): Promise<void> {
  for (let start = 0; start < rows.length; start += CHUNK) {
    const inserted = await tx
      .insert(alerts)
      .values(rows.slice(start, start + CHUNK))
      .onConflictDoNothing()
      .returning({ id: alerts.id });
    const ids = inserted.map(({ id }) => id);
    if (ids.length === 0) continue;
    await tx
      .update(alerts)
      .set({ details: sql`jsonb_set(${alerts.details}, '{message,alertId}', to_jsonb(${alerts.id}))` })
      .where(inArray(alerts.id, ids));
  }
}

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
