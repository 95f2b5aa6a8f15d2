import { HOUR_MS } from "#lib/units.ts";
import { joinIdDigests, NO_IDS } from "#stages/coverage/id-digest.ts";

/** Events of one hour (epoch ms of its start) and the digest of their log ids. */
export type ShownHour = readonly [startsAt: number, count: number, ids: string];

const HASH_BYTES = 8;
/** A pass remembers so many entries, which take about 15 MB, to notice those that a later page repeats. */
const MAX_REMEMBERED = 200_000;

/** The ids of the latest entries of a pass. */
export interface ShownIds {
  has(id: string): boolean;
  add(ids: ReadonlySet<string>): void;
}

export function createShownIds(): ShownIds {
  const shown = new Set<string>();
  return {
    has: (id) => shown.has(id),
    add(ids) {
      for (const id of ids) shown.add(id);
      for (const oldest of shown) {
        if (shown.size <= MAX_REMEMBERED) break;
        shown.delete(oldest);
      }
    },
  };
}

/**
 * Returns what a page of the list adds to its pass, hour by hour. An entry that an earlier page also showed is not counted
 * again, because events that arrive during a pass move entries to the next page.
 */
export function sumPageHours(times: Float64Array, idHashes: Buffer, shownBefore: ShownIds): ShownHour[] {
  const ids = new Set<string>();
  const sums = new Map<number, { count: number; high: number; low: number }>();
  for (const [index, occurredAt] of times.entries()) {
    const id = idHashes.toString("latin1", index * HASH_BYTES, (index + 1) * HASH_BYTES);
    const isRepeated = ids.has(id) || shownBefore.has(id);
    ids.add(id);
    if (isRepeated) continue;
    const hour = occurredAt - (occurredAt % HOUR_MS);
    const sum = sums.get(hour) ?? { count: 0, high: 0, low: 0 };
    sum.count++;
    sum.high ^= idHashes.readInt32BE(index * HASH_BYTES);
    sum.low ^= idHashes.readInt32BE(index * HASH_BYTES + 4);
    sums.set(hour, sum);
  }
  shownBefore.add(ids);
  return [...sums].map(([hour, { count, high, low }]): ShownHour => [hour, count, toHex(high, low)]);
}

function toHex(...words: readonly number[]): string {
  return words.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
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
