import type { Database } from "#db/client.ts";
import { lockLooks, readCoveredHours, writeLooks } from "#db/coverage/covered-hours.ts";
import { readFeatureIds } from "#db/coverage/hour-contents.ts";
import { type ListPass, readPassHours } from "#db/ingest/list-passes.ts";
import { readMovedIds } from "#db/ingest/merge-doubles.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { assertFence } from "#db/service/leases.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { type HourLooks, nextLook } from "#model/covered-hour.ts";
import { horizonAt, toDay } from "#model/horizon.ts";
import { findUnlisted } from "#stages/coverage/find-unlisted.ts";
import { NO_IDS } from "#stages/coverage/id-digest.ts";
import { moveIds } from "#stages/coverage/move-ids.ts";
import { joinPageHours } from "#stages/ingest/sum-page-hours.ts";

interface PassedDay {
  readonly zoneId: number;
  readonly dayStart: number;
  readonly lease: { readonly name: string; readonly fence: number };
}

/**
 * Stores a full list pass as a look at every hour of its day that had begun and that the platform has not begun to
 * forget. An entry that the list shows in another hour than its event counts in the event's hour, if the hour then holds
 * as many events as are stored. A pass of which a page is missing stores nothing.
 */
export async function recordListLooks(
  database: Database,
  { zoneId, dayStart, lease }: PassedDay,
  { pass, startedAt, pagesSeen, unreadable }: ListPass & { readonly unreadable: number },
): Promise<void> {
  const pages = await readPassHours(database.db, zoneId, toDay(dayStart), pass);
  if (pages.length < pagesSeen) return;
  const shown = joinPageHours(pages);
  const hours: number[] = [];
  for (let hour = dayStart; hour < Math.min(dayStart + DAY_MS, startedAt); hour += HOUR_MS)
    if (hour >= horizonAt(startedAt)) hours.push(hour);
  await inTransaction(database, async ({ tx }) => {
    const before = await lockLooks(tx, zoneId, hours);
    const around = { fromMs: dayStart - DAY_MS, toMs: dayStart + 2 * DAY_MS };
    const moved = moveIds(shown, await readMovedIds(tx, zoneId, around));
    const covered = await readCoveredHours(tx, zoneId, around);
    const stored = new Map(covered.map(({ startsAt, storedCount }) => [startsAt, storedCount]));
    const after = new Map<number, HourLooks>();
    for (const hour of hours) {
      const looks = before.get(hour) ?? {};
      const asShown = shown.get(hour) ?? { count: 0, ids: NO_IDS };
      const asStored = moved.get(hour);
      // The list may have shown a second time once and the event's own since.
      const isMoved = asShown.count !== stored.get(hour) && asStored?.count === stored.get(hour);
      const { count, ids } = isMoved && asStored !== undefined ? asStored : asShown;
      const isShort = count > 0 && count < (stored.get(hour) ?? 0);
      const unlisted = isShort ? findUnlisted({ count, ids }, await readFeatureIds(tx, zoneId, hour)) : null;
      const seen = {
        at: startedAt,
        pages: pagesSeen,
        count,
        ids,
        ...(unlisted === null ? {} : { unlisted }),
        ...(unreadable === 0 ? {} : { unreadable }),
      };
      after.set(hour, { ...looks, list: nextLook(looks.list, seen) });
    }
    await writeLooks(tx, zoneId, after);
    await assertFence(tx, lease.name, lease.fence);
  });
}
