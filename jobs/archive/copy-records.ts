import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { RecordSum } from "../../db/archive/day-files.ts";
import { readDayBlocks, readEventHashes, type ZoneDay } from "../../db/archive/day-source.ts";
import type { Transaction } from "../../db/postgres/transaction.ts";
import { hashRecord } from "../../src/archive/files/hash-record.ts";
import { createRecordRows, NO_EVENT } from "../../src/archive/files/record-rows.ts";
import { openRawBlock } from "../../src/model/raw-block.ts";

export interface CopiedRecords extends RecordSum {
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
  let [records, unmatched, sum] = [0, 0, 0n];
  async function* lines() {
    for await (const { logIdHashes, entryCount, block } of readDayBlocks(tx, zoneDay)) {
      const entries = await openRawBlock(block, entryCount);
      let text = "";
      for (const [index, record] of entries.entries()) {
        const row = places.take(logIdHashes, index);
        if (row === NO_EVENT) unmatched++;
        if (row < 0) continue;
        records++;
        sum += hashRecord(row, record);
        text += `${row},${record.toString("base64")}\n`;
      }
      yield text;
    }
  }
  await pipeline(Readable.from(lines()), createWriteStream(file));
  return { rows: places.rows, records, sum, unmatched };
}
