import { HOUR_MS } from "#lib/units.ts";
import type { EventKey } from "#model/waf-event.ts";
import { digestIds, joinIdDigests, NO_IDS } from "#stages/coverage/id-digest.ts";

/** Events of one hour (epoch ms of its start) and the digest of their log ids. */
export type ShownHour = readonly [startsAt: number, count: number, ids: string];

/** A pass remembers the ids of so many entries, which take about 15 MB, to notice those that a later page repeats. */
const MAX_REMEMBERED = 200_000;

/**
 * Returns what a page of the list adds to its pass, hour by hour, and adds its ids to `shown`. An entry that an earlier
 * page also showed is not counted again, because events that arrive during a pass move entries to the next page.
 */
export function sumPageHours(events: readonly EventKey[], shown: Set<string>): ShownHour[] {
  const ids = new Map<number, string[]>();
  for (const { occurredAt, logId } of events) {
    if (shown.has(logId)) continue;
    shown.add(logId);
    const hour = occurredAt - (occurredAt % HOUR_MS);
    const known = ids.get(hour);
    if (known === undefined) ids.set(hour, [logId]);
    else known.push(logId);
  }
  for (const oldest of shown) {
    if (shown.size <= MAX_REMEMBERED) break;
    shown.delete(oldest);
  }
  return [...ids].map(([hour, added]): ShownHour => [hour, added.length, digestIds(added)]);
}

/** Joins the hours of many pages of one pass. */
export function joinPageHours(
  pages: Iterable<readonly ShownHour[]>,
): Map<number, { count: number; ids: string }> {
  const joined = new Map<number, { count: number; ids: string }>();
  for (const hours of pages) {
    for (const [startsAt, count, ids] of hours) {
      const sum = joined.get(startsAt) ?? { count: 0, ids: NO_IDS };
      joined.set(startsAt, { count: sum.count + count, ids: joinIdDigests(sum.ids, ids) });
    }
  }
  return joined;
}
