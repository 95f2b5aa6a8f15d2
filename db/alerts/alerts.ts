/** Alerts as the jobs read and change them. */
import { and, desc, eq, exists, gt, inArray, isNull, or, sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { inTransaction } from "../postgres/transaction.ts";
import { alerts } from "../schema/alerts.ts";
import { notifications } from "../schema/notifications.ts";
import { spikes } from "../schema/spikes.ts";

export type SpikeRow = typeof spikes.$inferSelect;
export type AlertRow = typeof alerts.$inferSelect;

/**
 * Returns the newest spike of every rule and incident that may need a transition: open, closed after `closedAfterMs`, or
 * under an alert that is not resolved.
 */
export async function readRaisableSpikes(
  db: Queryable,
  { closedAfterMs }: { closedAfterMs: number },
): Promise<SpikeRow[]> {
  const unresolved = db
    .select({ spikeId: alerts.spikeId })
    .from(alerts)
    .where(sql`${alerts.state} <> 'resolved'`);
  return db
    .selectDistinctOn([spikes.zoneId, spikes.ruleId, spikes.incident])
    .from(spikes)
    .where(
      and(
        eq(spikes.isShadow, false),
        eq(spikes.isLate, false),
        or(
          isNull(spikes.closedAt),
          gt(spikes.closedAt, new Date(closedAfterMs)),
          inArray(spikes.id, unresolved),
        ),
      ),
    )
    .orderBy(spikes.zoneId, spikes.ruleId, spikes.incident, desc(spikes.id));
}

/** Returns the newest alert of each fingerprint, resolved or not. */
export async function readNewestAlerts(
  db: Queryable,
  fingerprints: readonly string[],
): Promise<ReadonlyMap<string, AlertRow>> {
  if (fingerprints.length === 0) return new Map();
  const rows = await db
    .selectDistinctOn([alerts.fingerprint])
    .from(alerts)
    // One parameter however many there are: a statement may have 65,535.
    .where(sql`${alerts.fingerprint} = any(${sql.param([...fingerprints])}::text[])`)
    .orderBy(alerts.fingerprint, desc(alerts.id));
  return new Map(rows.map((row) => [row.fingerprint, row]));
}

/** Returns the alerts of this kind that were resolved after a time and of which channels wait for the end of quiet hours. */
export function readWaitingAlerts(
  db: Queryable,
  { kind, resolvedAfterMs }: { kind: string; resolvedAfterMs: number },
): Promise<AlertRow[]> {
  const isHeld = sql`jsonb_array_length(${alerts.transitions} -> -1 -> 'held') > 0`;
  return db
    .select()
    .from(alerts)
    .where(and(eq(alerts.kind, kind), gt(alerts.resolvedAt, new Date(resolvedAfterMs)), isHeld))
    .orderBy(alerts.id);
}

/** Locks the spike for this transaction and returns it as it is now; another runner waits for the commit. */
export async function lockSpike(tx: Queryable, id: number): Promise<SpikeRow | null> {
  return (await lockSpikes(tx, [id]))[0] ?? null;
}

/** Does the same for many, in the order of ids, because another runner may lock the same ones. */
export function lockSpikes(tx: Queryable, ids: readonly number[]): Promise<SpikeRow[]> {
  const isAsked = sql`${spikes.id} = any(${sql.param([...ids])}::bigint[])`;
  return tx.select().from(spikes).where(isAsked).orderBy(spikes.id).for("no key update");
}

/**
 * Has the spike of an incident decide about the alert of a rule from now on. Returns false if the alert has moved since it was read,
 * or the incident decides about another one already.
 */
export function takeOverAlert(
  database: Database,
  spikeId: number,
  seen: Pick<AlertRow, "id" | "fingerprint" | "transition" | "state">,
): Promise<boolean> {
  return inTransaction(database, async ({ tx }) => {
    const isFree = and(eq(spikes.id, spikeId), isNull(spikes.takesOver), isNull(spikes.closedAt));
    const isSeen = and(
      eq(alerts.id, seen.id),
      eq(alerts.transition, seen.transition),
      eq(alerts.state, seen.state),
    );
    const taken = await tx
      .update(spikes)
      .set({ takesOver: seen.fingerprint })
      .where(and(isFree, exists(tx.select({ id: alerts.id }).from(alerts).where(isSeen).for("update"))))
      .returning({ id: spikes.id });
    if (taken.length === 0) return false;
    await tx.update(alerts).set({ spikeId }).where(isSeen);
    return true;
  });
}

/** Adds an attacker to those of an incident that a person has resolved. The spike must be locked. */
export async function addResolvedAttacker(tx: Queryable, id: number, attacker: string): Promise<void> {
  await tx
    .update(spikes)
    .set({
      resolvedAttackers: sql`array_append(array_remove(${spikes.resolvedAttackers}, ${attacker}), ${attacker})`,
    })
    .where(eq(spikes.id, id));
}

/** The members that one transition changes. */
type AlertChange = Pick<
  AlertRow,
  "state" | "transition" | "transitions" | "kind" | "spikeId" | "resolvedAt" | "zoneId"
>;

/** Inserts alerts. Returns the id of each fingerprint that had no unresolved alert. */
export async function insertAlerts(
  tx: Queryable,
  rows: readonly (AlertChange & Pick<AlertRow, "fingerprint" | "ruleId" | "firedAt">)[],
): Promise<ReadonlyMap<string, number>> {
  if (rows.length === 0) return new Map();
  const { id, fingerprint } = alerts;
  const insert = tx.insert(alerts).values([...rows]);
  const inserted = await insert.onConflictDoNothing().returning({ id, fingerprint });
  return new Map(inserted.map((row) => [row.fingerprint, row.id]));
}

/**
 * Stores the next transition of the alert if the alert is still at the transition and in the state that the caller
 * read. Returns false when it is not.
 */
export async function changeAlert(
  tx: Queryable,
  seen: Pick<AlertRow, "id" | "transition" | "state">,
  change: AlertChange,
): Promise<boolean> {
  // A reopened alert has no acknowledgement.
  const isReopened = seen.state === "resolved" && change.state !== "resolved";
  const acknowledgement = isReopened ? { acknowledgedAt: null, acknowledgedBy: null } : {};
  const changed = await tx
    .update(alerts)
    .set({ ...change, ...acknowledgement })
    .where(and(eq(alerts.id, seen.id), eq(alerts.transition, seen.transition), eq(alerts.state, seen.state)))
    .returning({ id: alerts.id });
  return changed.length === 1;
}

/** Sets the details and the spike of an alert without a transition. */
export async function describeAlert(
  tx: Queryable,
  id: number,
  described: Pick<AlertRow, "details" | "spikeId">,
): Promise<void> {
  await tx.update(alerts).set(described).where(eq(alerts.id, id));
}

/** Sets the details of many alerts with one statement. */
export async function describeAlerts(
  tx: Queryable,
  described: readonly Pick<AlertRow, "id" | "details">[],
): Promise<void> {
  await tx
    .update(alerts)
    .set({ details: sql`d.details` })
    .from(sql`jsonb_to_recordset(${JSON.stringify(described)}::jsonb) as d(id bigint, details jsonb)`)
    .where(sql`${alerts.id} = d.id`);
}

type NewNotification = Pick<
  typeof notifications.$inferInsert,
  "alertId" | "transition" | "reason" | "channel" | "dedupeKey" | "content"
>;

/** Inserts the outbox rows of one transition, due at once. */
export async function insertNotifications(tx: Queryable, rows: readonly NewNotification[]): Promise<void> {
  if (rows.length > 0) await tx.insert(notifications).values([...rows]);
}

const CHUNK = 500;

/** A resolve for which no channel is notified. */
export interface UnnotifiedResolve {
  readonly id: number;
  /** The transition that the caller read. An alert with a later transition is left unchanged. */
  readonly seen: number;
  readonly entry: unknown;
  /** The members of the latest message that change. */
  readonly changed: unknown;
}

/** Resolves alerts without outbox rows, in a few statements. Returns the number of resolved alerts. */
export async function resolveUnnotified(
  db: Queryable,
  resolves: readonly UnnotifiedResolve[],
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
