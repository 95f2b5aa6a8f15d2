import { and, eq, gte, isNull, lt, lte } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { wafEvents } from "../schema/waf-events.ts";

const w = coverageWindows;

const MAX_TIMES = 1_000;

/**
 * Returns the times of the hour's events before `beforeMs` that the search has not shown; epoch ms, ascending, the
 * first of many.
 */
export async function readUnresolved(
  db: Queryable,
  zoneId: number,
  { startsAt, beforeMs }: { startsAt: number; beforeMs: number },
): Promise<number[]> {
  const { occurredAt, feature } = wafEvents;
  const rows = await db
    .select({ at: epochMs(occurredAt) })
    .from(wafEvents)
    .where(
      and(
        eq(wafEvents.zoneId, zoneId),
        isNull(feature),
        gte(occurredAt, new Date(startsAt)),
        lt(occurredAt, new Date(Math.min(startsAt + 3_600_000, beforeMs))),
      ),
    )
    .orderBy(occurredAt)
    .limit(MAX_TIMES);
  return rows.map(({ at }) => at);
}

/** Marks all events of an hour as resolved, unless the list has stored another one since `seenAt` (epoch ms). */
export async function clearUnresolved(
  db: Queryable,
  zoneId: number,
  { startsAt, seenAt }: { startsAt: number; seenAt: number },
): Promise<void> {
  await db
    .update(w)
    .set({ unresolvedSince: null })
    .where(
      and(eq(w.zoneId, zoneId), eq(w.startsAt, new Date(startsAt)), lte(w.unresolvedSince, new Date(seenAt))),
    );
}
