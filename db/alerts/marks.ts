import { and, asc, desc, eq, gt, gte, isNotNull, isNull, lte, max, ne, not, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Mark } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import type { SpikeRow } from "../detection/spikes.ts";
import { alerts } from "../schema/alerts.ts";
import { spikes } from "../schema/spikes.ts";
import type { AlertRow } from "./alerts.ts";

type MarkedAlert = Pick<AlertRow, "zoneId" | "ruleId" | "spikeId" | "firedAt" | "resolvedAt">;

const mine = alias(spikes, "mine");

/**
 * Returns the condition for the spikes of the alert's rule that were open while the alert was. Includes spikes that
 * the alert no longer references because a later spike reopened it.
 */
function ofAlert({ zoneId, ruleId, spikeId, firedAt, resolvedAt }: MarkedAlert) {
  if (zoneId === null || ruleId === null || spikeId === null) return null;
  const during = and(
    eq(spikes.zoneId, zoneId),
    eq(spikes.ruleId, ruleId),
    // The other incidents of the zone are other alerts.
    eq(spikes.incident, sql`(select ${mine.incident} from ${spikes} ${mine} where ${mine.id} = ${spikeId})`),
    or(isNull(spikes.closedAt), gte(spikes.closedAt, firedAt)),
    resolvedAt === null ? undefined : lte(spikes.openedAt, resolvedAt),
  );
  return or(eq(spikes.id, spikeId), during);
}

/**
 * Returns the spikes behind an alert, oldest first, locked for this transaction. Returns none when the alert is about
 * no rule.
 */
export async function lockSpikesOf(tx: Queryable, alert: AlertRow): Promise<SpikeRow[]> {
  const own = ofAlert(alert);
  return own === null ? [] : tx.select().from(spikes).where(own).orderBy(asc(spikes.id)).for("no key update");
}

export async function markSpike(tx: Queryable, id: number, mark: Mark, markedAt: Date): Promise<void> {
  await tx.update(spikes).set({ mark, markedAt }).where(eq(spikes.id, id));
}

/** Returns the latest mark of the alert's spikes. */
export async function readMark(db: Queryable, alert: AlertRow): Promise<Mark | null> {
  const own = ofAlert(alert);
  if (own === null) return null;
  const [row] = await db
    .select({ mark: spikes.mark })
    .from(spikes)
    .where(and(own, isNotNull(spikes.mark)))
    .orderBy(desc(spikes.markedAt))
    .limit(1);
  return row?.mark ?? null;
}

export interface AlertMarks {
  /** The latest mark of the alert's spikes. */
  readonly mark: Mark | null;
  readonly markedAt: Date | null;
  /** Scores of the rule's spikes since `sinceMs` that were marked as anything but an attack. */
  readonly noiseScores: readonly number[];
}

/** Returns the marks that people gave the alert's spikes, and those of the rule's spikes since `sinceMs`. */
export async function readMarks(db: Queryable, alert: AlertRow, sinceMs: number): Promise<AlertMarks> {
  const own = ofAlert(alert);
  const { zoneId, ruleId } = alert;
  if (own === null || zoneId === null || ruleId === null)
    return { mark: null, markedAt: null, noiseScores: [] };
  const said = await db.select().from(spikes).where(own).orderBy(asc(spikes.markedAt));
  const last = said.findLast(({ mark }) => mark !== null);
  const isNoise = and(
    eq(spikes.zoneId, zoneId),
    eq(spikes.ruleId, ruleId),
    ne(spikes.mark, "attack"),
    gt(spikes.openedAt, new Date(sinceMs)),
  );
  const noise = await db.select({ score: spikes.score }).from(spikes).where(isNoise);
  return {
    mark: last?.mark ?? null,
    markedAt: last?.markedAt ?? null,
    noiseScores: noise.map(({ score }) => score),
  };
}

/** A spike with its mark, and what it is compared with other spikes by. */
export interface SubjectMark {
  readonly isOwn: boolean;
  readonly mark: Mark | null;
  readonly markedAt: Date | null;
  readonly alertId: number | null;
  /** The most frequent path of its events: hostile text. */
  readonly path: string | null;
  readonly sources: SpikeRow["sources"];
}

const MOST_FORMER = 200;

/** Returns the alert's spike and then, the newest mark first, the spikes of its rule that were marked since `sinceMs` for other alerts. */
export async function readSubjectMarks(
  db: Queryable,
  alert: MarkedAlert,
  sinceMs: number,
): Promise<SubjectMark[]> {
  const own = ofAlert(alert);
  const { zoneId, ruleId, spikeId } = alert;
  if (own == null || zoneId === null || ruleId === null || spikeId === null) return [];
  const { id, mark, markedAt, sources } = spikes;
  const isOwn = eq(id, spikeId);
  const ofRule = and(eq(spikes.zoneId, zoneId), eq(spikes.ruleId, ruleId), isNotNull(mark));
  return db
    .select({
      isOwn: sql<boolean>`${isOwn}`,
      mark,
      markedAt,
      alertId: max(alerts.id),
      path: sql<string | null>`${spikes.evidence} #>> '{top,path,0,value}'`,
      sources,
    })
    .from(spikes)
    .leftJoin(alerts, eq(alerts.spikeId, id))
    .where(or(isOwn, and(ofRule, gt(markedAt, new Date(sinceMs)), not(own))))
    .groupBy(id)
    .orderBy(desc(isOwn), desc(markedAt))
    .limit(MOST_FORMER);
}
