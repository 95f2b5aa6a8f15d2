import { LRUCache } from "lru-cache";
import { type EventKey, hashEventKey } from "#model/waf-event.ts";

export type NewestRecords = ReturnType<typeof createNewestRecords>;

/** A search row of a large record, and many of those of a minute of an attack. */
const MAX_BYTES = 16_777_216;
/** Memory of an entry in addition to its record. */
const ENTRY_BYTES = 200;

/**
 * Returns the rows of the newest searches of this process, limited in bytes: the matched text of a request is in its row minutes
 * before the list shows its record. A process that polls nothing has none, and reads stored records.
 */
export function createNewestRecords() {
  const records = new LRUCache<string, Buffer>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ length }) => length + ENTRY_BYTES,
  });
  const keyOf = (zoneId: number, event: EventKey) => `${zoneId} ${hashEventKey(event)}`;
  return {
    /** Keeps the rows of events, as `rows` and byte for byte. A row that is no event is left out. */
    keep(zoneId: number, rows: readonly unknown[], raws: readonly Buffer[]): void {
      for (const [i, row] of rows.entries()) {
        const { timestamp, logId } = (row ?? {}) as { timestamp?: unknown; logId?: unknown };
        const raw = raws[i];
        if (raw === undefined || typeof timestamp !== "number" || typeof logId !== "string") continue;
        // A copy, because the row is a view of its page.
        records.set(keyOf(zoneId, { occurredAt: timestamp, logId }), Buffer.from(raw));
      }
    },
    /** Returns the row of an event; undefined if the row is not there. */
    get: (zoneId: number, event: EventKey): Buffer | undefined => records.get(keyOf(zoneId, event)),
  };
}
