import type { RecordSum, RecordsCsv } from "#db/archive/day-files.ts";
import { readDayBlocks, readEventHashes, readOtherHashes, type ZoneDay } from "#db/archive/day-source.ts";
import type { Transaction } from "#db/postgres/transaction.ts";
import { openRawBlock } from "#model/raw-block.ts";
import { hashRecord } from "#stages/archive/files/hash-record.ts";
import { createRecordRows, NO_EVENT } from "#stages/archive/files/record-rows.ts";
import { type PlacedRecord, writeRecordsCsv } from "./write-records-csv.ts";

export interface CopiedRecords extends RecordSum, RecordsCsv {
  /** Records of events that are not stored. */
  readonly unmatched: number;
}

const PAIR_BYTES = 16;

/**
 * Copies the records of a day's events into CSV files of row numbers and records in base64. A record may be kept under
 * a second time of its event, even in a block of another day. If an event has several records, the first one counts.
 * One block at a time is in memory.
 */
export async function copyRecords(
  { tx, client }: Transaction,
  zoneDay: ZoneDay,
  { rows, folder }: { rows: number; folder: string },
): Promise<CopiedRecords> {
  const others: Buffer[] = [];
  for await (const pairs of readOtherHashes(client, zoneDay)) others.push(pairs);
  const pairs = others.reduce((sum, { length }) => sum + length / PAIR_BYTES, 0);
  const places = createRecordRows(rows + pairs);
  for await (const hashes of readEventHashes(client, zoneDay)) places.add(hashes);
  for (const some of others) places.addOthers(some);
  let [unmatched, sum] = [0, 0n];
  async function* placed() {
    for await (const { isOfDay, logIdHashes, entryCount, block } of readDayBlocks(tx, zoneDay)) {
      const found: PlacedRecord[] = [];
      for (const [index, record] of (await openRawBlock(block, entryCount)).entries()) {
        const row = places.take(logIdHashes, index);
        if (row === NO_EVENT && isOfDay) unmatched++;
        if (row < 0) continue;
        sum += hashRecord(row, record);
        found.push({ row, record });
      }
      yield found;
    }
  }
  const written = await writeRecordsCsv(folder, placed());
  return { ...written, rows: places.rows, sum, unmatched };
}
