/** The platform's advice on spikes, as it is stored. */
import { and, desc, eq, getTableColumns, gt, gte, inArray, isNull, ne, sql } from "drizzle-orm";
import { RULE_SPIKE_KINDS } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { advice } from "../schema/alerts.ts";
import { spikes } from "../schema/spikes.ts";

export interface AdviceKey {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly askedAtMs: number;
}

/** A stored ask without its text, which may be long. */
interface StoredAsk extends AdviceKey {
  readonly success: boolean;
  readonly errorKey: string | null;
}

/**
 * Keeps every other asker from deciding until the commit. Readers are not blocked. Take the lock before reading the
 * inputs of the decision.
 */
export async function lockAdvice(tx: Queryable): Promise<void> {
  await tx.execute(sql`lock table ${advice} in share row exclusive mode`);
}

/**
 * Returns every open spike of a rule with the columns that the decision to ask for advice needs. The platform advises on
 * rules, so nothing is asked about the sources or the changes of a zone.
 */
export async function readSpikesToAdvise(db: Queryable) {
  const rows = await db
    .select({
      id: spikes.id,
      zoneId: spikes.zoneId,
      ruleId: spikes.ruleId,
      severity: spikes.severity,
      openedAt: spikes.openedAt,
    })
    .from(spikes)
    .where(and(isNull(spikes.closedAt), eq(spikes.isShadow, false), inArray(spikes.kind, RULE_SPIKE_KINDS)));
  return rows.map(({ openedAt, ...spike }) => ({ ...spike, openedAtMs: openedAt.getTime() }));
}

/**
 * Returns every ask since `sinceMs`, and the older asks that may serve a spike that is open or was closed after
 * `sinceMs`: asks about the spike's rule, up to `beforeOpeningMs` before the spike opened. Each ask is returned once,
 * in no order.
 */
export async function readAsks(
  db: Queryable,
  { sinceMs, beforeOpeningMs }: { sinceMs: number; beforeOpeningMs: number },
): Promise<StoredAsk[]> {
  const { zoneId, ruleId, askedAt, success, errorKey } = getTableColumns(advice);
  const columns = { zoneId, ruleId, askedAt, success, errorKey };
  const since = new Date(sinceMs);
  const opening = sql`${spikes.openedAt} - ${beforeOpeningMs}::double precision * interval '1 millisecond'`;
  const isCurrent = sql`(${spikes.closedAt} is null or ${gt(spikes.closedAt, since)})`;
  const rows = await db
    .select(columns)
    .from(advice)
    .where(gte(advice.askedAt, since))
    .union(
      db
        .select(columns)
        .from(advice)
        .innerJoin(spikes, and(eq(spikes.zoneId, advice.zoneId), eq(spikes.ruleId, advice.ruleId)))
        .where(and(isCurrent, gte(advice.askedAt, opening))),
    );
  return rows.map(({ askedAt, ...row }) => ({ ...row, askedAtMs: askedAt.getTime() }));
}

/** Stores an ask before the request is sent. Returns false when the rule already has an ask of the same millisecond. */
export async function reserveAsk(
  tx: Queryable,
  ask: AdviceKey & { readonly spikeId: number | null; readonly errorKey: string },
): Promise<boolean> {
  const { askedAtMs, ...columns } = ask;
  const reserved = await tx
    .insert(advice)
    .values({ ...columns, askedAt: new Date(askedAtMs), success: false })
    .onConflictDoNothing()
    .returning({ ruleId: advice.ruleId });
  return reserved.length === 1;
}

/** Replaces the reservation with the outcome. */
export async function storeAdvice(
  db: Queryable,
  key: AdviceKey,
  result: { readonly success: boolean; readonly text: string | null; readonly errorKey: string | null },
): Promise<void> {
  const { success, text, errorKey } = result;
  await db.update(advice).set({ success, text, errorKey }).where(isAsk(key));
}

/** Returns the text of the answer, or null when there is none. The text is hostile. */
export async function readAdviceText(db: Queryable, key: AdviceKey): Promise<string | null> {
  const rows = await db.select({ text: advice.text }).from(advice).where(isAsk(key));
  return rows[0]?.text ?? null;
}

function isAsk({ zoneId, ruleId, askedAtMs }: AdviceKey) {
  return and(eq(advice.zoneId, zoneId), eq(advice.ruleId, ruleId), eq(advice.askedAt, new Date(askedAtMs)));
}

export interface StoredAdvice {
  /** The newest recommendation. Its text is hostile. */
  readonly answer: { readonly text: string; readonly askedAt: number } | null;
  /** Error key of the newest ask if that ask failed, else null. */
  readonly errorKey: string | null;
}

/** Returns the stored advice of a rule. An ask in progress does not count. */
export async function readStoredAdvice(
  db: Queryable,
  { zoneId, ruleId }: { readonly zoneId: number; readonly ruleId: string },
  asking: string,
): Promise<StoredAdvice> {
  const isOfRule = and(eq(advice.zoneId, zoneId), eq(advice.ruleId, ruleId));
  const [answer] = await db
    .select({ text: advice.text, askedAt: advice.askedAt })
    .from(advice)
    .where(and(isOfRule, eq(advice.success, true)))
    .orderBy(desc(advice.askedAt))
    .limit(1);
  const [failure] = await db
    .select({ errorKey: advice.errorKey })
    .from(advice)
    .where(and(isOfRule, eq(advice.success, false), ne(advice.errorKey, asking)))
    .orderBy(desc(advice.askedAt))
    .limit(1);
  return {
    answer: answer === undefined ? null : { text: answer.text ?? "", askedAt: answer.askedAt.getTime() },
    errorKey: failure?.errorKey ?? null,
  };
}
