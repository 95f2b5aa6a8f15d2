import type { RecordSum, RecordsCsv } from "../../db/archive/day-files.ts";
import { readDayBlocks, readEventHashes, type ZoneDay } from "../../db/archive/day-source.ts";
import type { Transaction } from "../../db/postgres/transaction.ts";
import { hashRecord } from "../../src/archive/files/hash-record.ts";
import { createRecordRows, NO_EVENT } from "../../src/archive/files/record-rows.ts";
import { openRawBlock } from "../../src/model/raw-block.ts";
import { type PlacedRecord, writeRecordsCsv } from "./write-records-csv.ts";

export interface CopiedRecords extends RecordSum, RecordsCsv {
  /** Records of events that are not stored, for example under a time that was corrected. */
  readonly unmatched: number;
}

/**
 * Copies the records of a day into a CSV file of row numbers and records in base64, in no order. If an event has several
 * records, the first one counts, as in a search. One block at a time is in memory.
 */
export async function copyRecords(
  { tx, client }: Transaction,
  zoneDay: ZoneDay,
  { rows, file }: { rows: number; file: string },
): Promise<CopiedRecords> {
  const places = createRecordRows(rows);
  for await (const hashes of readEventHashes(client, zoneDay)) places.add(hashes);
  let [unmatched, sum] = [0, 0n];
  async function* placed() {
    for await (const { logIdHashes, entryCount, block } of readDayBlocks(tx, zoneDay)) {
      const found: PlacedRecord[] = [];
      for (const [index, record] of (await openRawBlock(block, entryCount)).entries()) {
        const row = places.take(logIdHashes, index);
        if (row === NO_EVENT) unmatched++;
        if (row < 0) continue;
        sum += hashRecord(row, record);
        found.push({ row, record });
      }
      yield found;
    }
  }
  const written = await writeRecordsCsv(file, placed());
  return { ...written, rows: places.rows, sum, unmatched };
}
