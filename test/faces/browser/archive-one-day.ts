import path from "node:path";
import { expect, vi } from "vitest";
import type { Database } from "#db/client.ts";
import { createDuckdb } from "#db/duckdb/duckdb.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { writeDay } from "#jobs/archive/write-day.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { storeEvents } from "../../db/new-events.ts";
import { createRollUp, makeEvent } from "../../detection/trend-support.ts";

const ZONE = 101;

/** Puts a day that the emulator no longer has, five days ago, into the archive. */
export async function archiveOneDay(database: Database, folder: string): Promise<void> {
  const day = new Date(Date.now() - 5 * 86_400_000).toISOString().slice(0, 10);
  const events = Array.from({ length: 48 }, (_, index) =>
    makeEvent({ occurredAt: Date.parse(day) + index * 1_800_000, logId: `archived-${index}` }),
  );
  await ensurePartitions(database, [day]);
  await storeEvents(database, ZONE, events, { expectNew: false });
  const rollUp = createRollUp(database);
  const duckdb = createDuckdb({
    folders: [folder],
    spillInto: path.join(folder, "tmp"),
    memoryBytes: 192_000_000,
    residentBytes: 500_000_000,
  });
  const storage = createFolderStorage(folder);
  // The service may be counting the day's minutes at this moment, and its transaction has not ended.
  await vi.waitFor(async () => {
    await rollUp();
    const { outcome } = await writeDay({ database, storage, duckdb }, { zoneId: ZONE, day });
    expect(outcome).toBe("written");
  });
  await duckdb.close();
}
