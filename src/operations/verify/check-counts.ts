import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import { readStoredCells, readWithdrawnCells } from "#db/coverage/reconcile.ts";
import { readRuleCounts } from "#jobs/coverage/read-rule-counts.ts";
import { many, showTime } from "#lib/format.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { compareCounts } from "#stages/coverage/compare-counts.ts";
import { findAskable } from "./askable-hours.ts";
import { type Check, type Checked, type Difference, eachPart } from "./check.ts";

const NEVER = new AbortController().signal;

/**
 * Compares the platform's count of each rule in each hour with the stored events. A count that is lower by exactly the
 * withdrawn events is a note.
 */
export async function checkCounts(
  { db, zoneId, now, onStep, ...span }: Checked,
  edge: Pick<EdgeClient, "searchEventLogs">,
): Promise<Check> {
  const { askable, notes } = findAskable(now, span);
  const differences: Difference[] = [];
  const asked = { hours: 0, counts: 0 };
  for (const { from, to } of askable === null ? [] : eachPart(askable, DAY_MS)) {
    onStep("platform counts", (from - span.from) / (span.to - span.from));
    const hours = Array.from({ length: (to - from) / HOUR_MS }, (_, index) => from + index * HOUR_MS);
    const { cells: upstream } = await readRuleCounts(edge, zoneId, { from, buckets: hours.length }, NEVER);
    const stored = await readStoredCells(db, zoneId, hours);
    const withdrawn = await readWithdrawnCells(db, zoneId, { from, to });
    asked.hours += hours.length;
    asked.counts += [...upstream.values()].reduce((sum, rules) => sum + rules.size, 0);
    for (const { startsAt, differing } of compareCounts(hours, upstream, stored)) {
      let explained = 0;
      for (const { ruleId, upstreamCount: expected, storedCount: found } of differing)
        if (found - expected === withdrawn.get(startsAt)?.get(ruleId)) explained += found - expected;
        else differences.push({ at: startsAt, ruleId, expected, found, detail: null });
      if (explained > 0)
        notes.push(
          `${showTime(startsAt)}: ${many(explained, "stored event")} withdrawn by the platform, nothing to do`,
        );
    }
  }
  return {
    name: "platform counts",
    sides: ["the platform", "stored"],
    compared: `${many(asked.hours, "hour")}, ${many(asked.counts, "count")} of a rule in an hour`,
    differences,
    notes,
    failure: null,
  };
}
