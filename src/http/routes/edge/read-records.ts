import { findRecordBlocks, readRecordBlocks } from "../../../../db/archive/archive-records.ts";
import { findRecords } from "../../../archive/records/find-records.ts";
import type { EventKey } from "../../../model/event-key.ts";
import { hashEventKey } from "../../../model/log-id-hash.ts";
import type { PlatformDeps } from "./platform-deps.ts";

/** The record of each of these events, in their order; undefined where none is kept. */
export async function readRecords(
  { archive: { db }, openedBlocks }: Pick<PlatformDeps, "archive" | "openedBlocks">,
  zoneId: number,
  events: readonly EventKey[],
): Promise<(Buffer | undefined)[]> {
  const store = {
    findBlocks: (spans: Parameters<typeof findRecordBlocks>[2]) => findRecordBlocks(db, zoneId, spans),
    readBlocks: (wanted: Parameters<typeof readRecordBlocks>[2]) => readRecordBlocks(db, zoneId, wanted),
  };
  const records = await findRecords(store, openedBlocks, events);
  return events.map((event) => records.get(hashEventKey(event)));
}
