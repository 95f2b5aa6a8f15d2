import { and, count, eq, sql } from "drizzle-orm";
import type { Queryable } from "../../client.ts";
import { epochMs } from "../../postgres/terms.ts";
import {
  forwardDestinations as d,
  forwardRefusals as f,
  forwardHours as h,
} from "../../schema/forwarding.ts";

/** Whether a destination accepts events; times in epoch ms. */
export interface DestinationHealth {
  readonly acknowledgedAt: number | null;
  readonly failingSince: number | null;
  readonly retryAt: number | null;
  readonly failures: number;
  readonly isRefused: boolean;
  readonly lastError: string | null;
}

const HEALTH = {
  acknowledgedAt: epochMs(d.acknowledgedAt),
  failingSince: epochMs(d.failingSince),
  retryAt: epochMs(d.retryAt),
  failures: d.failures,
  isRefused: d.isRefused,
  lastError: d.lastError,
};

/** Returns the health of destinations by name. One that nothing was sent to is missing. */
export async function readDestinations(db: Queryable): Promise<Map<string, DestinationHealth>> {
  const rows = await db.select({ destination: d.destination, ...HEALTH }).from(d);
  return new Map(rows.map(({ destination, ...health }) => [destination, health]));
}

/** Notes that the destination is configured, and returns its health and how long it still has to be left alone. */
export async function noteSeen(
  db: Queryable,
  destination: string,
): Promise<{ readonly waitMs: number; readonly failures: number }> {
  const [seen] = await db
    .insert(d)
    .values({ destination, seenAt: sql`now()` })
    .onConflictDoUpdate({ target: d.destination, set: { seenAt: sql`now()` } })
    .returning({
      waitMs: sql<number>`greatest(0, coalesce(extract(epoch from ${d.retryAt} - now()) * 1000, 0))::float8`,
      failures: d.failures,
    });
  return seen ?? { waitMs: 0, failures: 0 };
}

/** Notes that the destination has acknowledged events. */
export async function noteSuccess(db: Queryable, destination: string): Promise<void> {
  await db
    .update(d)
    .set({
      acknowledgedAt: sql`now()`,
      failingSince: null,
      retryAt: null,
      failures: 0,
      isRefused: false,
      lastError: null,
    })
    .where(eq(d.destination, destination));
}

/** Notes that the destination has failed; nothing is sent to it for `pauseMs`. */
export async function noteFailure(
  db: Queryable,
  destination: string,
  { pauseMs, isRefused, error }: { pauseMs: number; isRefused: boolean; error: string },
): Promise<void> {
  await db
    .update(d)
    .set({
      failingSince: sql`coalesce(${d.failingSince}, now())`,
      retryAt: sql`now() + ${pauseMs}::float8 * interval '1 ms'`,
      failures: sql`${d.failures} + 1`,
      isRefused,
      lastError: error,
    })
    .where(eq(d.destination, destination));
}

/** Lets the next run try a failing destination at once. */
export async function tryNow(db: Queryable, destination: string): Promise<void> {
  await db.update(d).set({ retryAt: null }).where(eq(d.destination, destination));
}

/** Hours that differ and events that were refused, of one destination; times in epoch ms. */
export interface ArrivalTrouble {
  readonly differing: { readonly hours: number; readonly since: number } | null;
  readonly refused: { readonly events: number; readonly since: number; readonly reason: string } | null;
}

/** Returns what has not arrived at a destination although it was sent. */
export async function readArrivalTrouble(db: Queryable, destination: string): Promise<ArrivalTrouble> {
  const [hours] = await db
    .select({ hours: count(), since: epochMs(sql`min(${h.provenAt})`) })
    .from(h)
    .where(and(eq(h.destination, destination), eq(h.arrival, "differs")));
  const [events] = await db
    .select({
      events: count(),
      since: epochMs(sql`min(${f.refusedAt})`),
      reason: sql<string>`(array_agg(${f.reason} order by ${f.refusedAt} desc))[1]`,
    })
    .from(f)
    .where(eq(f.destination, destination));
  return {
    differing: hours === undefined || hours.hours === 0 ? null : hours,
    refused: events === undefined || events.events === 0 ? null : events,
  };
}
