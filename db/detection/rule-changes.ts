import { and, asc, eq, gt, isNull, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { ChangeKind } from "#model/kinds.ts";
import type { RuleChange } from "#model/rule-change.ts";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { spikes } from "../schema/spikes.ts";

const a = alias(alerts, "a");

/** A stored spike that is about changes of a zone's rules. */
export interface ChangesRow {
  readonly id: number;
  readonly zoneId: number;
  readonly isOpen: boolean;
  readonly changes: readonly RuleChange[];
}

/**
 * Returns the spikes of this kind that are open or closed after a time, the oldest first: of all zones, or of one whose
 * spikes are locked for this transaction.
 */
export async function readChanges(
  db: Queryable,
  { kind, closedAfterMs, zoneId }: { kind: ChangeKind; closedAfterMs: number; zoneId?: number },
): Promise<ChangesRow[]> {
  const { id, closedAt, changes } = spikes;
  const asked = db
    .select({ id, zoneId: spikes.zoneId, closedAt, changes })
    .from(spikes)
    .where(
      and(
        eq(spikes.kind, kind),
        or(isNull(closedAt), gt(closedAt, new Date(closedAfterMs))),
        zoneId === undefined ? undefined : eq(spikes.zoneId, zoneId),
      ),
    )
    .orderBy(asc(id));
  const rows = await (zoneId === undefined ? asked : asked.for("update"));
  return rows.map(({ closedAt, changes, ...row }) => ({
    ...row,
    isOpen: closedAt === null,
    changes: changes ?? [],
  }));
}

/**
 * Closes the open spikes of this kind whose alert a person has resolved, and those that opened before a time. Then the
 * next change of the zone opens another. Returns their number.
 */
export async function closeChanges(
  db: Queryable,
  { kind, openedBeforeMs, nowMs }: { kind: ChangeKind; openedBeforeMs: number; nowMs: number },
): Promise<number> {
  const isResolved = sql`exists (select from ${alerts} ${a}
    where ${a.spikeId} = ${spikes.id} and ${a.state} = 'resolved')`;
  const isOld = sql`${spikes.openedAt} <= ${new Date(openedBeforeMs)}`;
  const { rowCount } = await db
    .update(spikes)
    .set({ closedAt: sql`greatest(${spikes.openedAt}, ${new Date(nowMs)}::timestamptz)` })
    .where(and(eq(spikes.kind, kind), isNull(spikes.closedAt), or(isResolved, isOld)));
  return rowCount ?? 0;
}
