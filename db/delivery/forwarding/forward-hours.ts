import { and, asc, eq, inArray, lte, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { DAY_MS } from "#lib/units.ts";
import type { Span } from "#model/horizon.ts";
import type { Arrival } from "#model/kinds.ts";
import type { Queryable } from "../../client.ts";
import { epochMs, names } from "../../postgres/terms.ts";
import { coverageWindows as w } from "../../schema/coverage.ts";
import {
  forwardRefusals as f,
  forwardHours as h,
  changedMinutes as m,
  forwardReceipts as r,
} from "../../schema/forwarding.ts";
import type { ForwardCursor, ForwardedZone } from "./forward-cursors.ts";

/** After this time the platform shows nothing of an hour any more, so the hour cannot change. */
const CLOSES_MS = 4 * DAY_MS;

/** A part of an hour that has to be read and forwarded. */
export interface DueSpan extends Span {
  /** Start of the hour, epoch ms. */
  readonly startsAt: number;
  /** When this was read, by Postgres's clock, epoch ms. */
  readonly readAt: number;
}

/** Returns the parts of hours that are due, oldest first. */
export function readDueSpans(db: Queryable, zone: ForwardedZone, limit: number): Promise<DueSpan[]> {
  return db
    .select({
      startsAt: epochMs(h.startsAt),
      from: sql<number>`${epochMs(h.lookFrom)}`,
      to: sql<number>`${epochMs(h.lookTo)}`,
      readAt: epochMs(sql`clock_timestamp()`),
    })
    .from(h)
    .where(and(isOf(zone), lte(h.lookAt, sql`now()`)))
    .orderBy(asc(h.startsAt))
    .limit(limit);
}

/** Returns whether an hour is sealed or a gap. The hour of an archive day always is. */
export async function isDecided(db: Queryable, zoneId: number, startsAt: number): Promise<boolean> {
  const decided = await db
    .select({ state: w.state })
    .from(w)
    .where(
      and(eq(w.zoneId, zoneId), eq(w.startsAt, new Date(startsAt)), inArray(w.state, ["sealed", "gap"])),
    );
  return decided.length > 0;
}

/** Returns the starts of the hours among these (epoch ms) that can no longer change. */
export async function readClosed(
  db: Queryable,
  zone: ForwardedZone,
  hours: readonly number[],
): Promise<Set<number>> {
  const rows = await db
    .select({ startsAt: epochMs(h.startsAt) })
    .from(h)
    .where(and(isOf(zone), h.isClosed, inHours(hours)));
  return new Set(rows.map(({ startsAt }) => startsAt));
}

/** Result of reading a part of an hour. */
export interface ReadSpan {
  readonly startsAt: number;
  /** The due part that was read; null for changed minutes. */
  readonly due: DueSpan | null;
  /**
   * How many stored events are acknowledged, and how many pass the filter (null without one: coverage counts them). Null unless
   * the whole hour was read.
   */
  readonly whole: { readonly stored: number | null; readonly acknowledged: number } | null;
  /** The part with events that may still become complete; it is read again after `againMs`. */
  readonly waiting: Span | null;
  readonly againMs: number;
}

/**
 * Notes that a part of an hour was read. A due part is due no longer, unless it was requested again meanwhile. A part that
 * waits is added to the hour's due part. The earlier count of the hour is dropped unless the whole hour was read.
 */
export async function noteSpan(
  tx: Queryable,
  { destination, zoneId }: ForwardedZone,
  { startsAt, due, whole, waiting, againMs }: ReadSpan,
): Promise<void> {
  const given = alias(h, "excluded");
  const [from = null, to = null] = waiting === null ? [] : [new Date(waiting.from), new Date(waiting.to)];
  const again = waiting === null ? null : sql`now() + ${againMs}::float8 * interval '1 ms'`;
  const isOver = sql`${h.lookAt} <= to_timestamp(${due?.readAt ?? 0}::float8 / 1000)`;
  const next = (column: "lookFrom" | "lookTo" | "lookAt", merge: SQL) =>
    sql`${names(h[column])} = case when ${isOver} then ${given[column]} else ${merge}(${h[column]}, ${given[column]}) end`;
  const counts =
    whole === null
      ? sql`${names(h.stored)} = null`
      : sql`${names(h.stored)} = coalesce(${whole.stored}::integer, ${h.stored}), ${names(h.acknowledged)} = ${whole.acknowledged}`;
  await tx.execute(sql`
    insert into ${h} (${names(h.destination, h.zoneId, h.startsAt, h.lookFrom, h.lookTo, h.lookAt)})
    values (${destination}, ${zoneId}, ${new Date(startsAt)}, ${from}, ${to}, ${again})
    on conflict (${names(h.destination, h.zoneId, h.startsAt)}) do update
    set ${next("lookFrom", sql`least`)}, ${next("lookTo", sql`greatest`)}, ${next("lookAt", sql`least`)},
      ${names(h.arrival)} = 'open', ${counts}`);
}

/** A decided hour whose arrival is not. */
export interface UnprovenHour {
  readonly startsAt: number;
  /** Stored events of the hour, whatever the filter. */
  readonly stored: number;
  readonly acknowledged: number;
  readonly refused: number;
  /** Count of the last proof, or of the last reading of the whole hour with a filter. */
  readonly readCount: number | null;
  readonly wasSentAgain: boolean;
}

const REFUSED = sql<number>`(select count(*) from ${f} where ${f.destination} = ${h.destination} and ${f.zoneId} = ${h.zoneId}
  and ${f.occurredAt} >= ${h.startsAt} and ${f.occurredAt} < ${h.startsAt} + interval '1 hour')::integer`;

/**
 * Returns sealed hours and gaps whose changes are all forwarded and whose arrival is open, oldest first. `idleMs`: how
 * long ago the destination must have acknowledged the last of them.
 */
export function readUnproven(
  db: Queryable,
  zone: ForwardedZone,
  { cursor, idleMs, limit }: { cursor: ForwardCursor; idleMs: number; limit: number },
): Promise<UnprovenHour[]> {
  return db
    .select({
      startsAt: epochMs(h.startsAt),
      stored: w.storedCount,
      acknowledged: h.acknowledged,
      refused: REFUSED,
      readCount: h.stored,
      wasSentAgain: sql<boolean>`${h.sentAgainAt} is not null`,
    })
    .from(h)
    .innerJoin(
      w,
      sql`${w.zoneId} = ${h.zoneId} and ${w.startsAt} = ${h.startsAt} and ${w.state} in ('sealed', 'gap')`,
    )
    .where(
      sql`${isOf(zone)} and ${h.arrival} = 'open' and ${h.lookAt} is null
        and (${h.acknowledgedAt} is null or ${h.acknowledgedAt} <= now() - ${idleMs}::float8 * interval '1 ms')
        and not exists (select from ${m} where ${m.zoneId} = ${h.zoneId} and ${m.seq} > ${cursor.seq}
          and ${m.minute} >= ${h.startsAt} and ${m.minute} < ${h.startsAt} + interval '1 hour')`,
    )
    .orderBy(asc(h.startsAt))
    .limit(limit);
}

/** Stores whether an hour has arrived. */
export async function storeArrival(
  db: Queryable,
  zone: ForwardedZone,
  {
    startsAt,
    arrival,
    stored,
    counted,
  }: { startsAt: number; arrival: Arrival; stored: number; counted: number | null },
): Promise<void> {
  await db
    .update(h)
    .set({ arrival, stored, counted, provenAt: sql`now()` })
    .where(and(isOf(zone), eq(h.startsAt, new Date(startsAt))));
}

/**
 * Has whole hours read again. With `isAnew` their receipts are forgotten, so that everything is sent again. The proof gives
 * what it has counted (`stored`), and does either once for each count.
 */
export async function readHoursAgain(
  tx: Queryable,
  zone: ForwardedZone,
  hours: readonly number[],
  { isAnew, stored = null }: { readonly isAnew: boolean; readonly stored?: number | null },
): Promise<void> {
  const { destination, zoneId } = zone;
  if (isAnew)
    await tx.delete(r).where(
      and(
        eq(r.destination, destination),
        eq(r.zoneId, zoneId),
        inArray(
          r.startsAt,
          hours.map((ms) => new Date(ms)),
        ),
      ),
    );
  await tx
    .update(h)
    .set({
      arrival: "open",
      isClosed: false,
      stored,
      lookFrom: sql`${h.startsAt}`,
      lookTo: sql`${h.startsAt} + interval '1 hour'`,
      lookAt: sql`now()`,
      ...(isAnew ? { acknowledged: 0, sentAgainAt: stored === null ? null : sql`now()` } : {}),
    })
    .where(and(isOf(zone), inHours(hours)));
}

/** Closes hours that have arrived and can no longer change, and removes their receipts. */
export async function closeHours(
  tx: Queryable,
  { destination, zoneId }: ForwardedZone,
  nowMs: number,
): Promise<void> {
  await tx.execute(sql`
    with closed as (
      update ${h} set ${names(h.isClosed)} = true
      where ${isOf({ destination, zoneId })} and not ${h.isClosed} and ${h.arrival} = 'arrived'
        and ${h.startsAt} < ${new Date(nowMs - CLOSES_MS)}
      returning ${h.startsAt})
    delete from ${r} using closed
    where ${r.destination} = ${destination} and ${r.zoneId} = ${zoneId} and ${r.startsAt} = closed.starts_at`);
}

function isOf({ destination, zoneId }: ForwardedZone): SQL {
  return sql`${h.destination} = ${destination} and ${h.zoneId} = ${zoneId}`;
}

function inHours(hours: readonly number[]): SQL {
  return sql`${h.startsAt} = any(${sql.param(hours.map((ms) => new Date(ms)))}::timestamptz[])`;
}
