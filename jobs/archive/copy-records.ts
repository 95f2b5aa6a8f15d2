/** Copies records from blocks into a file. */

import { appendFile } from "node:fs/promises";
import path from "node:path";
import { createRecordRows, hashRecord, NO_EVENT } from "#archive/rules/files/record-rows.ts";
import { findRecords, type OpenedBlocks } from "#archive/rules/records/find-records.ts";
import { partOf, type RecordSum, type RecordsCsv } from "#db/archive/day-files.ts";
import { readDayBlocks, readEventHashes, readOtherHashes, type ZoneDay } from "#db/archive/day-source.ts";
import { findRecordBlocks, readOtherTimes, readRecordBlocks } from "#db/archive/read-files.ts";
import type { Queryable } from "#db/client.ts";
import type { Transaction } from "#db/postgres/transaction.ts";
import { openRawBlock } from "#model/raw-block.ts";
import { hashZoneEventKey, type ZoneEventKey } from "#model/waf-event.ts";

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

/** A record and the row of its event. */
export interface PlacedRecord {
  readonly row: number;
  readonly record: Buffer;
}

/** Writes records into CSV files in a folder of their own, for DuckDB. One batch is in memory at a time. */
export async function writeRecordsCsv(
  folder: string,
  batches: AsyncIterable<readonly PlacedRecord[]>,
): Promise<RecordsCsv & { readonly records: number }> {
  const parts = new Map<number, string>();
  let [records, longestLine] = [0, 0];
  for await (const batch of batches) {
    for (const [part, ofPart] of Map.groupBy(batch, ({ row }) => partOf(row))) {
      const lines = ofPart.map(({ row, record }) => `${row},${record.toString("base64")}\n`);
      for (const { length } of lines) longestLine = Math.max(longestLine, length);
      records += lines.length;
      const file = path.join(folder, `records-${part}.csv`);
      parts.set(part, file);
      await appendFile(file, lines.join(""), "latin1");
    }
  }
  return { parts, longestLine, records };
}

/**
 * Returns the records of events that Postgres has, by `hashZoneEventKey`. A record may be kept under a second time of its event.
 */
export async function readBlockRecords(
  { db, openedBlocks }: { readonly db: Queryable; readonly openedBlocks: OpenedBlocks },
  events: readonly ZoneEventKey[],
): Promise<ReadonlyMap<string, Buffer>> {
  if (events.length === 0) return new Map();
  const store = {
    findBlocks: (spans: Parameters<typeof findRecordBlocks>[1]) => findRecordBlocks(db, spans),
    readBlocks: (wanted: Parameters<typeof readRecordBlocks>[1]) => readRecordBlocks(db, wanted),
  };
  const others = (await readOtherTimes(db, events)).flatMap(({ index, occurredAt }) => {
    const event = events[index];
    return event === undefined ? [] : [{ event, other: { ...event, occurredAt } }];
  });
  const keys = [...events, ...others.map(({ other }) => other)];
  const records = await findRecords(store, openedBlocks, keys);
  for (const { event, other } of others) {
    const [record, hash] = [records.get(hashZoneEventKey(other)), hashZoneEventKey(event)];
    if (record !== undefined && !records.has(hash)) records.set(hash, record);
  }
  return records;
}
