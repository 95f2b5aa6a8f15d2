import { and, eq, getTableColumns, gt, gte, isNull, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { advice } from "../schema/advice.ts";
import { spikes } from "../schema/spikes.ts";

export interface AdviceKey {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly askedAtMs: number;
}

/** An ask without its text, which may be long. */
export interface StoredAsk extends AdviceKey {
  readonly success: boolean;
  readonly errorKey: string | null;
}

/** Keeps every other asker from deciding until the commit; readers go on. Take it before reading what to decide on. */
export async function lockAdvice(tx: Queryable): Promise<void> {
  await tx.execute(sql`lock table ${advice} in share row exclusive mode`);
}

/** Every open spike, as far as asking for advice needs it. */
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
    .where(isNull(spikes.closedAt));
  return rows.map(({ openedAt, ...spike }) => ({ ...spike, openedAtMs: openedAt.getTime() }));
}

/**
 * Every ask since `sinceMs`, and those that may serve a spike which is open or closed after that: about its rule, up to
 * `beforeOpeningMs` before it opened. Each once, in no order.
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

/** Writes an ask down before it is made. False when the rule has one of the same millisecond. */
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

/** Puts the outcome in the reservation's place. */
export async function storeAdvice(
  db: Queryable,
  key: AdviceKey,
  result: { readonly success: boolean; readonly text: string | null; readonly errorKey: string | null },
): Promise<void> {
  const { success, text, errorKey } = result;
  await db.update(advice).set({ success, text, errorKey }).where(isAsk(key));
}

/** The answer's text; hostile. Null when there is none. */
export async function readAdviceText(db: Queryable, key: AdviceKey): Promise<string | null> {
  const rows = await db.select({ text: advice.text }).from(advice).where(isAsk(key));
  return rows[0]?.text ?? null;
}

function isAsk({ zoneId, ruleId, askedAtMs }: AdviceKey) {
  return and(eq(advice.zoneId, zoneId), eq(advice.ruleId, ruleId), eq(advice.askedAt, new Date(askedAtMs)));
}
