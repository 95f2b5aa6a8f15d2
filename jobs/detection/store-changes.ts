import type { Database } from "#db/client.ts";
import { readChanges } from "#db/detection/rule-changes.ts";
import { collectEvidence, noEvidence } from "#db/detection/spike-evidence.ts";
import { openSpike, updateSpike } from "#db/detection/spikes.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import type { ChangeKind } from "#model/kinds.ts";
import { changesRule } from "#model/rules.ts";
import { mergeChanges, type NewChange } from "#stages/detection/merge-changes.ts";

/** A change that was reported is not reported again for so long, also if its spike was closed. */
export const REPORTED_MS = 8 * DAY_MS;

interface ChangesOfZone {
  readonly zoneId: number;
  readonly kind: ChangeKind;
  /** Changes that may be stored already, by another replica. */
  readonly found: readonly NewChange[];
  /** Rules whose change is over. */
  readonly ended: ReadonlySet<string>;
}

/**
 * Adds changes to the zone's open spike, or opens one, because a zone that is switched as a whole must not be one alert
 * for each rule. The spike closes when all of its changes are over. Returns whether anything was stored. Of two replicas
 * that found the same change one stores it.
 */
export function storeChanges(
  database: Database,
  { zoneId, kind, found, ended }: ChangesOfZone,
  clock: () => number,
): Promise<boolean> {
  return inTransaction(database, async ({ tx }) => {
    const rows = await readChanges(tx, { kind, zoneId, closedAfterMs: clock() - REPORTED_MS });
    // Read under the lock: raise-alerts compares it with the time of the last message, which it writes under the same lock.
    const foundAt = clock();
    const open = rows.find(({ isOpen }) => isOpen) ?? null;
    const known = rows.flatMap(({ changes }) => changes);
    const merged = mergeChanges({ open: open?.changes ?? [], known, found, ended, atMs: foundAt });
    if (merged === null) return false;
    const { changes, isOver } = merged;
    const at = new Date(foundAt);
    const events = changes.reduce(
      (sum, { flip, endedAt }) => sum + (endedAt === null ? (flip?.events ?? 0) : 0),
      0,
    );
    const counts = { windowCount: events, peak: events };
    const times = { lastActiveAt: at, judgedThrough: at };
    if (open !== null)
      return updateSpike(tx, open.id, { changes, ...counts, ...times, closedAt: isOver ? at : null });
    const [first, ...others] = changes;
    if (first === undefined) return false;
    const fromMs = first.since * MINUTE_MS;
    const scope = { zoneId, ruleId: first.ruleId, fromMs, sinceMs: fromMs, toMs: foundAt, sparkline: [] };
    const isOfOne = others.length === 0 && first.flip !== undefined;
    const opened = await openSpike(tx, {
      zoneId,
      kind,
      ruleId: changesRule(kind),
      severity: "warning",
      openedAt: at,
      changes,
      // There is no window and no threshold: a change has no size.
      windowMinutes: 60,
      baseline: 0,
      threshold: 0,
      score: 0,
      ...counts,
      ...times,
      evidence: isOfOne ? await collectEvidence(tx, scope) : noEvidence(scope),
    });
    return opened !== null;
  });
}
