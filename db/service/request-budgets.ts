import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { requestBudgets } from "../schema/request-budgets.ts";

/** A token bucket that holds at most `burst` tokens and refills at a rate. One token is one request. */
export interface RequestBudget {
  readonly name: string;
  readonly ratePerSecond: number;
  readonly burst: number;
}

export interface TakenTokens {
  /** Whole tokens, from 0 up to the requested number. */
  readonly granted: number;
  /** Time until the next token; 0 when any was granted. Another replica may take that token first. */
  readonly waitMs: number;
  readonly isPaused: boolean;
}

/** A longer pause is cut to this: events expire, and the platform repeats a pause that it still needs. */
export const MAX_PAUSE_MS = 5 * 60_000;

/**
 * The rate applies to real time over all replicas, so the clock is Postgres's, read once and after the row is locked.
 */
const NOW = sql`date_trunc('milliseconds', clock_timestamp())`;
const LONGEST_PAUSE = sql`${MAX_PAUSE_MS}::integer * interval '1 millisecond'`;

/**
 * Takes up to `atMost` tokens but never the last `reserve`. In any window all callers together get at most burst +
 * rate * window. A clock that steps back costs no more than the tokens of the step. A pause that such a step leaves
 * in the future ends after the longest pause.
 */
export async function takeTokens(
  db: Queryable,
  budget: RequestBudget,
  { atMost, reserve }: { atMost: number; reserve: number },
): Promise<TakenTokens> {
  const { name, ratePerSecond: rate, burst } = budget;
  const take = () =>
    db.execute<{ granted: number; waitMs: number; isPaused: boolean }>(sql`
      with locked as (
        select tokens, refilled_at, paused_until from request_budgets where name = ${name} for update
      ), read as (
        select tokens, refilled_at, paused_until, ${NOW} as at from locked
      ), paused as (
        select tokens, at, least(refilled_at, at) as refilled_at,
          case when paused_until > at + ${LONGEST_PAUSE} then at + ${LONGEST_PAUSE} else paused_until end as paused_until
        from read
      ), filled as (
        select at, paused_until, coalesce(paused_until > at, false) as is_paused,
          least(${burst}::float8, tokens + ${rate}::float8 * greatest(0,
            extract(epoch from at - greatest(refilled_at, paused_until)))::float8) as tokens
        from paused
      ), answer as (
        -- A pause leaves no tokens, and none are added while it lasts.
        select *, greatest(0, least(${atMost}::float8, floor(tokens - ${reserve}::float8))) as granted from filled
      )
      update request_budgets b set tokens = a.tokens - a.granted, refilled_at = a.at,
        paused_until = case when a.is_paused then a.paused_until end
      from answer a where b.name = ${name}
      returning a.granted::integer as granted, a.is_paused as "isPaused",
        ceil(case when a.is_paused then extract(epoch from a.paused_until - a.at)::float8 * 1000
          when a.granted > 0 then 0
          else (1 + ${reserve}::float8 - a.tokens) / ${rate}::float8 * 1000 end)::integer as "waitMs"`);
  for (;;) {
    const [taken] = (await take()).rows;
    if (taken !== undefined) return taken;
    await db.insert(requestBudgets).values({ name, tokens: burst, refilledAt: NOW }).onConflictDoNothing();
  }
}

/**
 * Pauses every caller for `pauseMs`, or for longer if a longer pause was already in effect. Afterwards the bucket
 * begins empty.
 */
export async function pauseBudget(db: Queryable, name: string, pauseMs: number): Promise<void> {
  const pausedUntil = sql`${NOW} + ${Math.min(pauseMs, MAX_PAUSE_MS)}::float8 * interval '1 millisecond'`;
  await db
    .insert(requestBudgets)
    .values({ name, tokens: 0, refilledAt: NOW, pausedUntil })
    .onConflictDoUpdate({
      target: requestBudgets.name,
      set: { tokens: 0, pausedUntil: sql`greatest(${requestBudgets.pausedUntil}, ${pausedUntil})` },
    });
}

/** Returns what a caller would get now, without taking; null before the first call. */
export async function readBudget(
  db: Queryable,
  { name, ratePerSecond: rate, burst }: RequestBudget,
): Promise<{ tokens: number; isPaused: boolean } | null> {
  const { rows } = await db.execute<{ tokens: number; isPaused: boolean }>(sql`
    select least(${burst}::float8, tokens + ${rate}::float8 * greatest(0,
        extract(epoch from clock_timestamp() - greatest(refilled_at, paused_until)))::float8) as tokens,
      coalesce(paused_until > clock_timestamp(), false) as "isPaused"
    from request_budgets where name = ${name}`);
  return rows[0] ?? null;
}
