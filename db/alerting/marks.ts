import { and, asc, eq, gt, gte, isNull, lte, or } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import type { SpikeRow } from "../detection/spikes.ts";
import { spikes } from "../schema/spikes.ts";
import type { AlertRow } from "./alerts.ts";

export type Mark = NonNullable<SpikeRow["mark"]>;

/** Spikes of the alert's rule that were open while it was; also those it has forgotten because a later one reopened it. */
function ofAlert({ zoneId, ruleId, spikeId, firedAt, resolvedAt }: AlertRow) {
  if (zoneId === null || ruleId === null || spikeId === null) return null;
  const during = and(
    eq(spikes.zoneId, zoneId),
    eq(spikes.ruleId, ruleId),
    or(isNull(spikes.closedAt), gte(spikes.closedAt, firedAt)),
    resolvedAt === null ? undefined : lte(spikes.openedAt, resolvedAt),
  );
  return or(eq(spikes.id, spikeId), during);
}

/** The spikes behind an alert, oldest first, for this transaction alone; none where it is about no rule. */
export async function lockSpikesOf(tx: Queryable, alert: AlertRow): Promise<SpikeRow[]> {
  const mine = ofAlert(alert);
  return mine === null
    ? []
    : tx.select().from(spikes).where(mine).orderBy(asc(spikes.id)).for("no key update");
}

export async function markSpike(tx: Queryable, id: number, mark: Mark, markedAt: Date): Promise<void> {
  await tx.update(spikes).set({ mark, markedAt }).where(eq(spikes.id, id));
}

export interface AlertMarks {
  /** Of the alert's spikes, the latest word. */
  readonly mark: Mark | null;
  readonly markedAt: Date | null;
  /** Scores of the rule's spikes that were marked as noise lately. */
  readonly noiseScores: readonly number[];
}

/** What people said of the alert's spikes, and of the rule's since `sinceMs`. */
export async function readMarks(db: Queryable, alert: AlertRow, sinceMs: number): Promise<AlertMarks> {
  const mine = ofAlert(alert);
  const { zoneId, ruleId } = alert;
  if (mine === null || zoneId === null || ruleId === null)
    return { mark: null, markedAt: null, noiseScores: [] };
  const said = await db.select().from(spikes).where(mine).orderBy(asc(spikes.markedAt));
  const last = said.findLast(({ mark }) => mark !== null);
  const isNoise = and(
    eq(spikes.zoneId, zoneId),
    eq(spikes.ruleId, ruleId),
    eq(spikes.mark, "noise"),
    gt(spikes.openedAt, new Date(sinceMs)),
  );
  const noise = await db.select({ score: spikes.score }).from(spikes).where(isNoise);
  return {
    mark: last?.mark ?? null,
    markedAt: last?.markedAt ?? null,
    noiseScores: noise.map(({ score }) => score),
  };
}
