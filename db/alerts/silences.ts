import { and, asc, desc, eq, gt, inArray, lt, lte, sql } from "drizzle-orm";
import type { SilenceEnding, SilenceState } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { silences } from "../schema/alerts.ts";

export type SilenceRow = typeof silences.$inferSelect;

export async function insertSilence(
  tx: Queryable,
  silence: Pick<SilenceRow, "startsAt" | "expiresAt" | "createdBy" | "reason"> & {
    readonly matchers: object;
  },
): Promise<number> {
  const [inserted] = await tx.insert(silences).values(silence).returning({ id: silences.id });
  if (inserted === undefined) throw new Error("an insert returned no row");
  return inserted.id;
}

export async function readSilence(db: Queryable, id: number): Promise<SilenceRow | null> {
  const [row] = await db.select().from(silences).where(eq(silences.id, id));
  return row ?? null;
}

/** Returns the silences that were in force at some time from `fromMs` through `toMs`, oldest first. */
export function readSilences(
  db: Queryable,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<SilenceRow[]> {
  return db
    .select()
    .from(silences)
    .where(and(lte(silences.startsAt, new Date(toMs)), gt(silences.expiresAt, new Date(fromMs))))
    .orderBy(asc(silences.id));
}

export interface SilencePageQuery {
  /** Keeps silences that can mute an alert of one of these zones. Null keeps all. */
  readonly zoneIds: readonly number[] | null;
  readonly states: readonly SilenceState[];
  readonly nowMs: number;
  /** Id of the last silence of the previous page. */
  readonly beforeId: number | undefined;
  readonly limit: number;
}

/** Returns the matching silences, newest first. */
export function pageSilences(db: Queryable, query: SilencePageQuery): Promise<SilenceRow[]> {
  const { zoneIds, states, nowMs, beforeId, limit } = query;
  const now = new Date(nowMs);
  const state = sql`case when ${silences.expiresAt} <= ${now} then 'expired' when ${silences.startsAt} <= ${now}
    then 'active' else 'pending' end`;
  return db
    .select()
    .from(silences)
    .where(
      and(
        inArray(state, [...states]),
        zoneIds === null ? undefined : concernsZones(zoneIds),
        beforeId === undefined ? undefined : lt(silences.id, beforeId),
      ),
    )
    .orderBy(desc(silences.id))
    .limit(limit);
}

/** Returns the condition for silences that name one of the zones, or no zone, which means every zone. */
function concernsZones(zoneIds: readonly number[]) {
  const zones = sql`${silences.matchers} -> 'zone'`;
  return sql`(${zones} is null or jsonb_typeof(${zones}) = 'array' and exists (
    select from jsonb_array_elements_text(case jsonb_typeof(${zones}) when 'array' then ${zones} else '[]' end) as named
    where named = any(${sql.param(zoneIds.map(String))}::text[])))`;
}

/** Two replicas that measured the clock of Postgres agree within this. */
const CLOCKS_DIFFER_MS = 2_000;

/**
 * Ends a silence now. Returns `over` if it had already ended and `unknown` if there is no such silence. Only one of two
 * concurrent calls ends it: a silence that ends within `CLOCKS_DIFFER_MS` counts as over, because a replica whose clock
 * is behind would otherwise end it again.
 */
export async function expireSilence(
  tx: Queryable,
  id: number,
  nowMs: number,
): Promise<SilenceEnding | "unknown"> {
  const now = new Date(nowMs);
  const ended = await tx
    .update(silences)
    // A silence that has not begun must still end after its start.
    .set({ expiresAt: sql`greatest(${now}::timestamptz, ${silences.startsAt} + interval '1 microsecond')` })
    .where(
      and(
        eq(silences.id, id),
        gt(silences.expiresAt, new Date(nowMs + CLOCKS_DIFFER_MS)),
        sql`${silences.expiresAt} > ${silences.startsAt} + interval '1 microsecond'`,
      ),
    )
    .returning({ id: silences.id });
  if (ended.length === 1) return "expired";
  const known = await tx.select({ id: silences.id }).from(silences).where(eq(silences.id, id));
  return known.length === 1 ? "over" : "unknown";
}

/**
 * Moves the end of a silence that is not over to a later time. Returns the silence, `over` if it had ended, `earlier` if
 * it ends at that time or later already, and `unknown` if there is no such silence.
 */
export async function extendSilence(
  tx: Queryable,
  id: number,
  { expiresAtMs, nowMs }: { readonly expiresAtMs: number; readonly nowMs: number },
): Promise<SilenceRow | "over" | "earlier" | "unknown"> {
  const [row] = await tx.select().from(silences).where(eq(silences.id, id)).for("update");
  if (row === undefined) return "unknown";
  if (row.expiresAt.getTime() <= nowMs) return "over";
  if (row.expiresAt.getTime() >= expiresAtMs) return "earlier";
  const expiresAt = new Date(expiresAtMs);
  await tx.update(silences).set({ expiresAt }).where(eq(silences.id, id));
  return { ...row, expiresAt };
}
