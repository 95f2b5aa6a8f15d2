import { clearUnresolved, readUnresolved } from "#db/ingest/remove-events.ts";
import type { HeldLease } from "#db/postgres/hold-lease.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import { horizonAt } from "#model/horizon.ts";
import { planResolution } from "#stages/coverage/plan-resolution.ts";
import { type CopySearchDeps, copySearch } from "./copy-search.ts";

/** The search usually shows an event within seconds of the list, so every poll searches for it during this time. */
const EAGER_MS = 5 * 60_000;
/** After this time the platform's search may never show the event. */
const PATIENT_MS = 15 * 60_000;

export interface ResolveEventsDeps extends CopySearchDeps {
  /**
   * When an hour (`zone:epoch ms`) was last searched for its unresolved events or for its rest; kept by this process
   * between the runs.
   */
  readonly searchedAt: Map<string, number>;
}

interface Poll {
  readonly zoneId: number;
  readonly lease: Pick<HeldLease, "name" | "fence">;
  /** The hours that the platform still serves. */
  readonly hours: readonly CoveredHour[];
}

/**
 * Searches exactly the events that the list has stored and the search has not shown, so that they get every dimension
 * soon. May run twice: a search fills missing values and changes nothing else.
 */
export async function resolveEvents(
  deps: ResolveEventsDeps,
  { zoneId, lease, hours }: Poll,
  signal: AbortSignal,
): Promise<void> {
  const { database, clock, searchedAt } = deps;
  const now = clock();
  for (const hour of hours) {
    if (signal.aborted) return;
    const { startsAt, unresolvedSince, searchedThrough } = hour;
    const key = `${zoneId}:${startsAt}:unresolved`;
    if (unresolvedSince === null || searchedThrough === null) {
      searchedAt.delete(key);
      continue;
    }
    if (!isDue(now, hour, searchedAt.get(key))) continue;
    searchedAt.set(key, now);
    const seenAt = now;
    const asked = await readUnresolved(database.db, zoneId, { startsAt, beforeMs: searchedThrough });
    for (const { from, to } of planResolution(asked)) {
      if (from < horizonAt(now)) continue;
      await copySearch(deps, { zoneId, lease, from, to, expectNew: false }, signal);
    }
    const left = await readUnresolved(database.db, zoneId, { startsAt, beforeMs: now });
    if (left.length === 0) await clearUnresolved(database.db, zoneId, { startsAt, seenAt });
  }
}

function isDue(now: number, { unresolvedSince }: CoveredHour, last: number | undefined): boolean {
  if (last === undefined || (unresolvedSince ?? 0) > last) return true;
  return now - (unresolvedSince ?? 0) < EAGER_MS || now - last >= PATIENT_MS;
}
