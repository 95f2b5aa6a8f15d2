import { and, eq, gt, inArray } from "drizzle-orm";
import { RULE_SPIKE_KINDS } from "#model/kinds.ts";
import type { TracedSpike } from "#model/spike-trace.ts";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { spikes } from "../schema/spikes.ts";

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
