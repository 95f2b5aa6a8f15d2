import { findRecordBlocks, readOtherTimes, readRecordBlocks } from "#db/archive/read-files.ts";
import type { Queryable } from "#db/client.ts";
import { type EventKey, hashEventKey } from "#model/waf-event.ts";
import { findRecords } from "#stages/archive/records/find-records.ts";
import type { OpenedBlocks } from "#stages/archive/records/opened-blocks.ts";

/**
 * Returns the records of events that Postgres has, by `hashEventKey`. A record may be kept under a second time of its event.
 */
export async function readBlockRecords(
  { db, openedBlocks }: { readonly db: Queryable; readonly openedBlocks: OpenedBlocks },
  zoneId: number,
  events: readonly EventKey[],
): Promise<ReadonlyMap<string, Buffer>> {
  if (events.length === 0) return new Map();
  const store = {
    findBlocks: (spans: Parameters<typeof findRecordBlocks>[2]) => findRecordBlocks(db, zoneId, spans),
    readBlocks: (wanted: Parameters<typeof readRecordBlocks>[2]) => readRecordBlocks(db, zoneId, wanted),
  };
  const others = (await readOtherTimes(db, zoneId, events)).flatMap(({ index, occurredAt }) => {
    const event = events[index];
    return event === undefined ? [] : [{ event, other: { occurredAt, logId: event.logId } }];
  });
  const keys: EventKey[] = [...events, ...others.map(({ other }) => other)];
  const records = await findRecords(store, openedBlocks, keys);
  for (const { event, other } of others) {
    const record = records.get(hashEventKey(other));
    if (record !== undefined && !records.has(hashEventKey(event))) records.set(hashEventKey(event), record);
  }
  return records;
}
