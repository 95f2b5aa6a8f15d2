import { open } from "node:fs/promises";
import type { RecordsCsv } from "../../db/archive/day-files.ts";

/** A record and the row of its event. */
export interface PlacedRecord {
  readonly row: number;
  readonly record: Buffer;
}

/** Writes records as CSV for DuckDB, part by part: one part is in memory at a time. */
export async function writeRecordsCsv(
  csv: string,
  parts: AsyncIterable<readonly PlacedRecord[]>,
): Promise<RecordsCsv & { readonly records: number }> {
  const handle = await open(csv, "w");
  let [records, longestLine] = [0, 0];
  try {
    for await (const part of parts) {
      const lines = part.map(({ row, record }) => `${row},${record.toString("base64")}\n`);
      for (const { length } of lines) longestLine = Math.max(longestLine, length);
      records += lines.length;
      await handle.writeFile(lines.join(""), "latin1");
    }
  } finally {
    await handle.close();
  }
  return { csv, longestLine, records };
}
