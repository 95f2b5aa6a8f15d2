import { eq, inArray, isNotNull, isNull, or, type SQL, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import { DEFAULT_ACCOUNT } from "#model/zones.ts";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { requestBudgets } from "../schema/service.ts";

const b = alias(requestBudgets, "b");
const z = alias(requestBudgets, "z");
const one = alias(requestBudgets, "one");
const other = alias(requestBudgets, "other");

/** A token bucket that holds at most `burst` tokens and refills at a rate. One token is one request. */
export interface RequestBudget {
  readonly name: string;
  readonly ratePerSecond: number;
  readonly burst: number;
}

const PREFIX = "edge:";

/** Returns the name of an account's budget. The name of an account has no dot. */
export function toBudgetName(account: string): string {
  return account === DEFAULT_ACCOUNT ? "edge" : `${PREFIX}${account}`;
}

/** Whether the row is of a zone of the budget's account. A zone may have been in another account before. */
function isOfBudget(column: PgColumn, name: string): SQL {
  return sql`starts_with(${column}, ${`${name}.`})`;
}

export interface TakenTokens {
  /** Whole tokens, from 0 up to the requested number. */
  readonly granted: number;
  /** Time until the next token; 0 when any was granted. Another replica may take that token first. */
  readonly waitMs: number;
  readonly isPaused: boolean;
  /** The zones that the platform has refused since its last answer for them. */
  readonly refusedZones: readonly RefusedZone[];
}

interface RefusedZone {
  readonly zoneId: number;
  /** Time until a request for the zone may be sent; 0 if one may be sent now. */
  readonly waitMs: number;
}

/** A longer pause is cut to this: events expire, and the platform repeats a pause that it still needs. */
export const MAX_PAUSE_MS = 5 * 60_000;

/**
 * The rate applies to real time over all replicas, so the clock is Postgres's, read once and after the row is locked.
 */
const NOW = sql`date_trunc('milliseconds', clock_timestamp())`;
/** Refusals of two zones that begin within this time are one limit of the account. */
const BEGUN_TOGETHER = sql`interval '1 minute'`;
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
    db.execute<{ [Key in keyof TakenTokens]: TakenTokens[Key] }>(sql`
      with locked as (
        select ${b.tokens}, ${b.refilledAt}, ${b.pausedUntil} from ${requestBudgets} ${b} where ${b.name} = ${name} for update
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
      update ${requestBudgets} ${b} set ${names(b.tokens)} = a.tokens - a.granted, ${names(b.refilledAt)} = a.at,
        ${names(b.pausedUntil)} = case when a.is_paused then a.paused_until end
      from answer a where ${b.name} = ${name}
      returning a.granted::integer as granted, a.is_paused as "isPaused",
        ceil(case when a.is_paused then extract(epoch from a.paused_until - a.at)::float8 * 1000
          when a.granted > 0 then 0
          else (1 + ${reserve}::float8 - a.tokens) / ${rate}::float8 * 1000 end)::integer as "waitMs",
        (select coalesce(json_agg(json_build_object('zoneId', ${z.zoneId}, 'waitMs',
            greatest(0, least(${MAX_PAUSE_MS}::integer, ceil(extract(epoch from ${z.pausedUntil} - a.at) * 1000))))), '[]')
          from ${requestBudgets} ${z} where ${z.refusedSince} is not null and ${isOfBudget(z.name, name)}) as "refusedZones"`);
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

/**
 * Pauses the requests for one zone, and every caller if the account seems to be limited: if the platform has begun to
 * refuse another zone of the account, too, within the last minute. Returns whether it has paused every caller.
 */
export async function pauseZone(
  db: Queryable,
  name: string,
  { zoneId, pauseMs }: { zoneId: number; pauseMs: number },
): Promise<boolean> {
  const pausedUntil = sql`${NOW} + ${Math.min(pauseMs, MAX_PAUSE_MS)}::float8 * interval '1 millisecond'`;
  const { pausedUntil: until, refusedSince: since } = requestBudgets;
  await db
    .insert(requestBudgets)
    .values({ name: `${name}.${zoneId}`, zoneId, tokens: 0, refilledAt: NOW, pausedUntil, refusedSince: NOW })
    .onConflictDoUpdate({
      target: requestBudgets.name,
      set: {
        pausedUntil: sql`greatest(${until}, excluded.paused_until)`,
        // A refusal long after the pause is a new one: nothing was sent meanwhile.
        refusedSince: sql`case when ${until} > excluded.refused_since - ${LONGEST_PAUSE}
          then coalesce(${since}, excluded.refused_since) else excluded.refused_since end`,
      },
    });
  // A statement of its own: of two replicas that store refusals at the same time, at least one reads both.
  const { rows } = await db.execute(sql`
    select from ${requestBudgets} ${one} join ${requestBudgets} ${other} on ${other.zoneId} <> ${one.zoneId}
    where ${one.zoneId} = ${zoneId} and ${one.refusedSince} > ${NOW} - ${BEGUN_TOGETHER}
      and ${other.refusedSince} > ${NOW} - ${BEGUN_TOGETHER}
      and ${isOfBudget(one.name, name)} and ${isOfBudget(other.name, name)}
    limit 1`);
  if (rows.length > 0) await pauseBudget(db, name, pauseMs);
  return rows.length > 0;
}

/** Stores that the platform answers for the zone again. */
export async function endRefusal(db: Queryable, zoneId: number): Promise<void> {
  await db.update(requestBudgets).set({ refusedSince: null }).where(eq(requestBudgets.zoneId, zoneId));
}

/** A pause that the platform asked for, epoch ms. */
export interface Pause {
  readonly account: string;
  /** Null for the whole account. */
  readonly zoneId: number | null;
  /** May be over. */
  readonly until: number;
  /** Null for the account. */
  readonly refusedSince: number | null;
}

/** Returns the pause of each account, and those of the zones that the platform has refused since its last answer. */
export async function readPauses(db: Queryable): Promise<Pause[]> {
  const { name, zoneId, pausedUntil, refusedSince } = requestBudgets;
  const rows = await db
    .select({ name, zoneId, pausedUntil, refusedSince })
    .from(requestBudgets)
    .where(or(isNull(zoneId), isNotNull(refusedSince)));
  return rows.flatMap(({ pausedUntil: until, name: budget, ...row }) => {
    const [first = ""] = budget.split(".");
    const account = first.startsWith(PREFIX) ? first.slice(PREFIX.length) : DEFAULT_ACCOUNT;
    return until === null
      ? []
      : [{ ...row, account, until: until.getTime(), refusedSince: row.refusedSince?.getTime() ?? null }];
  });
}

/** Returns what a caller of each budget would get now, without taking; null before the first call. */
export async function readBudgets(
  db: Queryable,
  budgets: readonly RequestBudget[],
): Promise<({ readonly tokens: number; readonly isPaused: boolean } | null)[]> {
  const names = budgets.map(({ name }) => name);
  const rows = await db
    .select({
      name: b.name,
      tokens: b.tokens,
      seconds: sql<number>`greatest(0,
        extract(epoch from clock_timestamp() - greatest(${b.refilledAt}, ${b.pausedUntil})))::float8`,
      isPaused: sql<boolean>`coalesce(${b.pausedUntil} > clock_timestamp(), false)`,
    })
    .from(b)
    .where(inArray(b.name, names));
  return budgets.map(({ name, ratePerSecond, burst }) => {
    const row = rows.find((one) => one.name === name);
    if (row === undefined) return null;
    return { tokens: Math.min(burst, row.tokens + ratePerSecond * row.seconds), isPaused: row.isPaused };
  });
}
