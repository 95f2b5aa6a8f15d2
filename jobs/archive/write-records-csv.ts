import { appendFile } from "node:fs/promises";
import path from "node:path";
import { partOf, type RecordsCsv } from "#db/archive/day-files.ts";

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
