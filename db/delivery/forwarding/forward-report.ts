import { and, asc, count, desc, eq, gt, gte, inArray, lt, ne, or, type SQL, sql } from "drizzle-orm";
import type { Arrival, HourState } from "#model/kinds.ts";
import type { Queryable } from "../../client.ts";
import { epochMs } from "../../postgres/terms.ts";
import { coverageWindows as w } from "../../schema/coverage.ts";
import {
  forwardCursors as c,
  forwardRefusals as f,
  forwardHours as h,
  changedMinutes as m,
} from "../../schema/forwarding.ts";
import type { ForwardedZone } from "./forward-cursors.ts";

/** Hours that are reported. Null: every zone, of every destination. Times are epoch ms. */
export interface ReportedHours {
  readonly destination?: string;
  readonly zoneIds?: readonly number[] | null;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

const DECIDED = sql`${w.state} in ('sealed', 'gap')`;
const startOfHour = (time: typeof m.minute | typeof f.occurredAt) =>
  sql<string>`date_trunc('hour', ${time}, 'UTC')`;

/**
 * Selects the hours that a destination gets, since its cursor's beginning. An hour is open while it can gain events or has
 * changes that were not read. A decided hour without events has no row of `forward_hours`, and has arrived.
 */
function selectHours(db: Queryable, { destination, zoneIds = null, from = 0, to }: ReportedHours) {
  const changed = db
    .select({
      destination: c.destination,
      zoneId: c.zoneId,
      startsAt: startOfHour(m.minute).as("changed_hour"),
    })
    .from(c)
    .innerJoin(m, and(eq(m.zoneId, c.zoneId), gt(m.seq, c.seq), gte(m.minute, c.since)))
    .groupBy(c.destination, c.zoneId, startOfHour(m.minute))
    .as("changed");
  const refused = db
    .select({
      destination: f.destination,
      zoneId: f.zoneId,
      startsAt: startOfHour(f.occurredAt).as("refused_hour"),
      events: count().as("refused_events"),
    })
    .from(f)
    .groupBy(f.destination, f.zoneId, startOfHour(f.occurredAt))
    .as("refused");
  const isChanged = sql`${changed.zoneId} is not null`;
  return db
    .select({
      destination: c.destination,
      zoneId: c.zoneId,
      startsAt: w.startsAt,
      state: w.state,
      storedCount: w.storedCount,
      readCount: h.stored,
      acknowledged: sql<number>`coalesce(${h.acknowledged}, 0)`.as("acknowledged"),
      refused: sql<number>`coalesce(${refused.events}, 0)::integer`.as("refused"),
      counted: h.counted,
      arrival: sql<Arrival>`case when not ${DECIDED} or ${isChanged} then 'open'
        else coalesce(${h.arrival}, case when ${w.storedCount} = 0 then 'arrived' else 'open' end) end`.as(
        "arrival",
      ),
      isWaiting: sql<boolean>`${h.lookAt} is not null or ${isChanged}`.as("is_waiting"),
      provenAt: h.provenAt,
      sentAgainAt: h.sentAgainAt,
    })
    .from(c)
    .innerJoin(w, and(eq(w.zoneId, c.zoneId), gte(w.startsAt, c.since)))
    .leftJoin(
      h,
      and(
        eq(h.destination, c.destination),
        eq(h.zoneId, c.zoneId),
        eq(h.startsAt, w.startsAt),
        // Postgres does not infer this.
        gte(h.startsAt, new Date(from)),
      ),
    )
    .leftJoin(
      refused,
      and(
        eq(refused.destination, c.destination),
        eq(refused.zoneId, c.zoneId),
        eq(refused.startsAt, w.startsAt),
      ),
    )
    .leftJoin(
      changed,
      and(
        eq(changed.destination, c.destination),
        eq(changed.zoneId, c.zoneId),
        eq(changed.startsAt, w.startsAt),
      ),
    )
    .where(
      and(
        destination === undefined ? undefined : eq(c.destination, destination),
        zoneIds === null ? undefined : inArray(c.zoneId, [...zoneIds]),
        gte(w.startsAt, new Date(from)),
        to === undefined ? undefined : lt(w.startsAt, new Date(to)),
      ),
    )
    .as("hours");
}

/** How much of a zone has arrived at a destination; times in epoch ms. */
export interface ZoneArrival extends ForwardedZone {
  /** Hours that are sealed, or gaps. */
  readonly decided: number;
  readonly arrived: number;
  readonly differing: number;
  /** Start of the oldest decided hour that has not arrived. */
  readonly oldestAt: number | null;
  /** Hours that are still to be read, and at most how many of their events the destination lacks. */
  readonly waitingHours: number;
  readonly waitingEvents: number;
  /** Events that the destination has refused. */
  readonly refused: number;
}

/** Returns what has arrived, by destination and zone. Zones without an hour since their cursor's beginning are missing. */
export async function readArrivals(db: Queryable, reported: ReportedHours): Promise<ZoneArrival[]> {
  const one = selectHours(db, reported);
  const isDecided = sql`${one.state} in ('sealed', 'gap')`;
  const isLate = sql`${isDecided} and ${one.arrival} <> 'arrived'`;
  const isWaiting = sql`${one.isWaiting} and ${one.storedCount} > 0`;
  const countIf = (condition: SQL) => sql<number>`(count(*) filter (where ${condition}))::integer`;
  return db
    .select({
      destination: one.destination,
      zoneId: one.zoneId,
      decided: countIf(isDecided),
      arrived: countIf(sql`${isDecided} and ${one.arrival} = 'arrived'`),
      differing: countIf(sql`${isDecided} and ${one.arrival} = 'differs'`),
      oldestAt: epochMs(sql<string | null>`min(${one.startsAt}) filter (where ${isLate})`),
      waitingHours: countIf(isWaiting),
      waitingEvents: sql<number>`coalesce(sum(greatest(${one.storedCount} - ${one.acknowledged}, 0))
        filter (where ${isWaiting}), 0)::float8`,
      refused: sql<number>`sum(${one.refused})::integer`,
    })
    .from(one)
    .groupBy(one.destination, one.zoneId)
    .orderBy(one.destination, one.zoneId);
}

/** One hour at a destination; times in epoch ms. */
export interface ForwardedHour {
  readonly zoneId: number;
  readonly startsAt: number;
  readonly state: HourState;
  /** Stored events that pass the filter. Null: a filter is set, and nobody has counted yet. */
  readonly stored: number | null;
  readonly acknowledged: number;
  readonly refused: number;
  /** The destination's own count; null if it was not asked. */
  readonly counted: number | null;
  readonly arrival: Arrival;
  readonly provenAt: number | null;
  readonly sentAgainAt: number | null;
}

/** Returns hours of a destination by zone and time. `after` is the last hour of the page before. */
export function listForwardedHours(
  db: Queryable,
  {
    isFiltered,
    arrival,
    after,
    limit,
    ...reported
  }: ReportedHours & {
    readonly isFiltered: boolean;
    readonly arrival?: Arrival | undefined;
    readonly after?: { readonly zoneId: number; readonly startsAt: number } | null;
    readonly limit: number;
  },
): Promise<ForwardedHour[]> {
  const one = selectHours(db, reported);
  const { zoneId, startsAt } = one;
  return db
    .select({
      zoneId,
      startsAt: epochMs(startsAt),
      state: one.state,
      stored: isFiltered
        ? sql<number | null>`case when ${one.storedCount} = 0 then 0 else ${one.readCount} end`
        : sql<number | null>`${one.storedCount}`,
      acknowledged: one.acknowledged,
      refused: one.refused,
      counted: one.counted,
      arrival: one.arrival,
      provenAt: epochMs(one.provenAt),
      sentAgainAt: epochMs(one.sentAgainAt),
    })
    .from(one)
    .where(
      and(
        arrival === undefined ? undefined : eq(one.arrival, arrival),
        after == null
          ? undefined
          : or(
              gt(zoneId, after.zoneId),
              and(eq(zoneId, after.zoneId), gt(startsAt, new Date(after.startsAt))),
            ),
      ),
    )
    .orderBy(asc(zoneId), asc(startsAt))
    .limit(limit);
}

/** Returns the beginning of each cursor (epoch ms), by destination and zone. */
export function listCursors(db: Queryable): Promise<(ForwardedZone & { readonly since: number })[]> {
  return db
    .select({ destination: c.destination, zoneId: c.zoneId, since: epochMs(c.since) })
    .from(c)
    .orderBy(c.destination, c.zoneId);
}

/** An event that a destination has refused; times in epoch ms. */
export interface RefusedEvent {
  readonly zoneId: number;
  readonly occurredAt: number;
  readonly logId: string;
  readonly refusedAt: number;
  readonly reason: string;
}

/** Returns refused events, newest first. `after` is the last one of the page before. */
export function listRefusals(
  db: Queryable,
  {
    destination,
    zoneIds,
    after,
    limit,
  }: {
    readonly destination: string;
    readonly zoneIds: readonly number[] | null;
    readonly after: Pick<RefusedEvent, "occurredAt" | "zoneId" | "logId"> | null;
    readonly limit: number;
  },
): Promise<RefusedEvent[]> {
  return db
    .select({
      zoneId: f.zoneId,
      occurredAt: epochMs(f.occurredAt),
      logId: f.logId,
      refusedAt: epochMs(f.refusedAt),
      reason: f.reason,
    })
    .from(f)
    .where(
      and(
        eq(f.destination, destination),
        zoneIds === null ? undefined : inArray(f.zoneId, [...zoneIds]),
        after === null
          ? undefined
          : sql`(${f.occurredAt}, ${f.zoneId}, ${f.logId}) < (${new Date(after.occurredAt)}, ${after.zoneId}, ${after.logId})`,
      ),
    )
    .orderBy(desc(f.occurredAt), desc(f.zoneId), desc(f.logId))
    .limit(limit);
}

/** Removes the refusals of a destination. Returns the hours of the events (epoch ms) with their number. */
export async function removeRefusals(
  tx: Queryable,
  destination: string,
  zoneIds: readonly number[] | null,
): Promise<{ zoneId: number; startsAt: number; events: number }[]> {
  const removed = tx.$with("removed").as(
    tx
      .delete(f)
      .where(
        and(eq(f.destination, destination), zoneIds === null ? undefined : inArray(f.zoneId, [...zoneIds])),
      )
      .returning({ zoneId: f.zoneId, startsAt: startOfHour(f.occurredAt).as("starts_at") }),
  );
  return tx
    .with(removed)
    .select({ zoneId: removed.zoneId, startsAt: epochMs(removed.startsAt), events: count() })
    .from(removed)
    .groupBy(removed.zoneId, removed.startsAt);
}

/** Opens the arrival of hours, so that the next run proves them again. Returns how many hours there are. */
export async function openArrivals(
  tx: Queryable,
  { destination, zoneIds = null, from, to }: ReportedHours & { readonly destination: string },
): Promise<number> {
  const opened = await tx
    .update(h)
    .set({ arrival: "open" })
    .where(
      and(
        eq(h.destination, destination),
        zoneIds === null ? undefined : inArray(h.zoneId, [...zoneIds]),
        ne(h.arrival, "open"),
        from === undefined ? undefined : gte(h.startsAt, new Date(from)),
        to === undefined ? undefined : lt(h.startsAt, new Date(to)),
      ),
    );
  return opened.rowCount ?? 0;
}
