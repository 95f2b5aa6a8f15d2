import type { Queryable } from "#db/client.ts";
import { type ChangesRow, readActionCounts, readRuleActions } from "#db/detection/rule-changes.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { classifyAction } from "#model/action-class.ts";
import { keyOf } from "#model/fingerprint.ts";
import { createActionWatch } from "#stages/detection/flips/action-watch.ts";
import type { NewChange } from "#stages/detection/merge-changes.ts";
import { toSourceAddress } from "#stages/detection/sources/source-event.ts";
import { REPORTED_MS } from "./store-changes.ts";

/** Four surprises are the least that can prove a change, which ten of thirty events may already have done. */
const RARE = { atLeast: 4, share: 0.35 };
/** Maximum number of rules that are judged in one run, those with the rarest action first. */
const RULES_PER_RUN = 300;
/** The newest events of a rule. In so many usual ones every run of surprises ends. */
const EVENTS_PER_RULE = 500;

/**
 * Finds rules that begin to block or to log. A rule is judged whenever it has an event of the action that is rare for it
 * in [fromMs, nowMs), from its stored events and hours.
 */
export async function findFlips(
  db: Queryable,
  rows: readonly ChangesRow[],
  { fromMs, nowMs }: { fromMs: number; nowMs: number },
): Promise<(NewChange & { readonly zoneId: number })[]> {
  const changed = new Map(
    rows.flatMap(({ zoneId, changes }) =>
      changes.map((change) => [keyOf({ zoneId, ruleId: change.ruleId }), { zoneId, ...change }] as const),
    ),
  );
  // A run of surprises may be a week old, and what was usual before it is of another week.
  const fromHour = Math.floor((nowMs - 2 * REPORTED_MS) / HOUR_MS);
  const scope = { fromMs, daysFromMs: nowMs - REPORTED_MS, fromHour, limit: RULES_PER_RUN, ...RARE };
  const counts = await readActionCounts(db, { ...scope, changed: [...changed.values()] });
  if (counts.length === 0) return [];
  const watch = createActionWatch();
  for (const { hours, ...rule } of counts) {
    const { since, foundAt = 0 } = changed.get(keyOf(rule)) ?? {};
    watch.restore(
      keyOf(rule),
      hours.map(([hour, stopped, logged]) => ({ hour, stopped, events: stopped + logged })),
      since === undefined ? undefined : { since, foundAt: Math.floor(foundAt / MINUTE_MS) },
    );
  }
  const events = await readRuleActions(db, counts, { afterMs: nowMs - REPORTED_MS, limit: EVENTS_PER_RULE });
  // The last one of a rule counts: it may have changed and changed back.
  const flips = new Map<string, NewChange & { readonly zoneId: number }>();
  for (const { zoneId, ruleId, minute, action, ip } of events) {
    const key = keyOf({ zoneId, ruleId });
    const found = watch.take(key, classifyAction(action), toSourceAddress(ip), minute);
    if (found === null) continue;
    const { since, minute: _minute, ruleId: _key, ...flip } = found;
    flips.set(key, { zoneId, ruleId, since, flip });
  }
  return [...flips.values()];
}
