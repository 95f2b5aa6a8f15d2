import { and, desc, eq, gt, gte, inArray, isNull, lt, sql } from "drizzle-orm";
import { RULE_SPIKE_KINDS } from "#model/kinds.ts";
import type { TracedSpike } from "#model/spike-trace.ts";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { spikes } from "../schema/spikes.ts";
import type { SpikeRow } from "./spikes.ts";

/** Selects spikes. A member that is left out does not filter. */
export interface SpikeFilter {
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  readonly ruleId?: string | undefined;
  readonly isOpen?: boolean | undefined;
  readonly severities?: readonly SpikeRow["severity"][] | undefined;
  readonly isLate?: boolean | undefined;
  /** Start of the half-open span of opening times, epoch ms. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  /** Id of the last spike of the previous page. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

/** Returns the matching spikes, newest first. */
export function listSpikes(db: Queryable, filter: SpikeFilter): Promise<SpikeRow[]> {
  const { zoneIds, ruleId, isOpen, severities, isLate, sinceMs, untilMs, beforeId, limit } = filter;
  return db
    .select()
    .from(spikes)
    .where(
      and(
        zoneIds === null ? undefined : inArray(spikes.zoneId, [...zoneIds]),
        ruleId === undefined ? undefined : eq(spikes.ruleId, ruleId),
        isOpen === undefined
          ? undefined
          : isOpen
            ? isNull(spikes.closedAt)
            : sql`${spikes.closedAt} is not null`,
        severities === undefined ? undefined : inArray(spikes.severity, [...severities]),
        isLate === undefined ? undefined : eq(spikes.isLate, isLate),
        sinceMs === undefined ? undefined : gte(spikes.openedAt, new Date(sinceMs)),
        untilMs === undefined ? undefined : lt(spikes.openedAt, new Date(untilMs)),
        beforeId === undefined ? undefined : lt(spikes.id, beforeId),
      ),
    )
    .orderBy(desc(spikes.id))
    .limit(limit);
}

export async function readSpike(db: Queryable, id: number): Promise<SpikeRow | null> {
  const [row] = await db.select().from(spikes).where(eq(spikes.id, id));
  return row ?? null;
}

interface OpenedSpike extends TracedSpike {
  readonly id: number;
  readonly windowMinutes: number;
}

const TRACED = { zoneId: spikes.zoneId, ruleId: spikes.ruleId, openedAt: spikes.openedAt };

/** Returns the spikes of rules that opened after a time. */
export async function readOpenedSpikes(db: Queryable, afterMs: number): Promise<OpenedSpike[]> {
  const rows = await db
    .select({ id: spikes.id, windowMinutes: spikes.windowMinutes, ...TRACED })
    .from(spikes)
    .where(
      and(
        gt(spikes.openedAt, new Date(afterMs)),
        inArray(spikes.kind, RULE_SPIKE_KINDS),
        eq(spikes.isLate, false),
      ),
    );
  return rows.map((row) => ({ ...row, openedAt: row.openedAt.getTime() }));
}

/** Returns the spike of a rule's alert; null for every other alert. */
export async function readAlertSpike(db: Queryable, alertId: number): Promise<TracedSpike | null> {
  const [row] = await db
    .select(TRACED)
    .from(alerts)
    .innerJoin(spikes, eq(spikes.id, alerts.spikeId))
    .where(and(eq(alerts.id, alertId), inArray(spikes.kind, RULE_SPIKE_KINDS)));
  return row === undefined ? null : { ...row, openedAt: row.openedAt.getTime() };
}
