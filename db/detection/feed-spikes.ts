import { and, desc, eq, gte, inArray, isNull, lt, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { spikes } from "../schema/spikes.ts";
import type { SpikeRow } from "./spikes.ts";

/** Selects spikes. A member that is left out does not filter. */
export interface SpikeFilter {
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  readonly ruleId?: string | undefined;
  readonly isOpen?: boolean | undefined;
  readonly severities?: readonly SpikeRow["severity"][] | undefined;
  readonly isLate?: boolean | undefined;
  /** Start of the half-open span of opening times, epoch ms. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  /** Id of the last spike of the previous page. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

/** Returns the matching spikes, newest first. */
export function listSpikes(db: Queryable, filter: SpikeFilter): Promise<SpikeRow[]> {
  const { zoneIds, ruleId, isOpen, severities, isLate, sinceMs, untilMs, beforeId, limit } = filter;
  return db
    .select()
    .from(spikes)
    .where(
      and(
        zoneIds === null ? undefined : inArray(spikes.zoneId, [...zoneIds]),
        ruleId === undefined ? undefined : eq(spikes.ruleId, ruleId),
        isOpen === undefined
          ? undefined
          : isOpen
            ? isNull(spikes.closedAt)
            : sql`${spikes.closedAt} is not null`,
        severities === undefined ? undefined : inArray(spikes.severity, [...severities]),
        isLate === undefined ? undefined : eq(spikes.isLate, isLate),
        sinceMs === undefined ? undefined : gte(spikes.openedAt, new Date(sinceMs)),
        untilMs === undefined ? undefined : lt(spikes.openedAt, new Date(untilMs)),
        beforeId === undefined ? undefined : lt(spikes.id, beforeId),
      ),
    )
    .orderBy(desc(spikes.id))
    .limit(limit);
}

export async function readSpike(db: Queryable, id: number): Promise<SpikeRow | null> {
  const [row] = await db.select().from(spikes).where(eq(spikes.id, id));
  return row ?? null;
}
