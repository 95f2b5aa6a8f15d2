import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createDuckdb, type Duckdb } from "../../db/duckdb/duckdb.ts";
import { EVENT_FILE_COLUMNS } from "../../src/model/archive-layout.ts";
import type { WafEvent } from "../../src/model/waf-event.ts";

export interface ArchiveFolder {
  readonly folder: string;
  readonly duckdb: Duckdb;
  close(): Promise<void>;
}

/** A folder for archive files and a DuckDB that may read and write there. */
export async function openFolder(): Promise<ArchiveFolder> {
  const folder = await mkdtemp(path.join(tmpdir(), "longwatch-archive-"));
  const duckdb = createDuckdb({
    folders: [folder],
    spillInto: path.join(folder, "spill"),
    memoryBytes: 256_000_000,
    residentBytes: 1_000_000_000,
  });
  const close = async () => {
    await duckdb.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { folder, duckdb, close };
}

/** Writes events as an events file of the archive. */
export async function writeEventsFile(duckdb: Duckdb, file: string, events: readonly WafEvent[]): Promise<void> {
  const rows = events.map(({ occurredAt, logId, ruleId, ...event }) => ({
    ...event,
    occurred_at: occurredAt,
    zone_id: 101,
    log_id: logId,
    rule_id: ruleId,
  }));
  await writeFile(`${file}.json`, rows.map((row) => JSON.stringify(row)).join("\n"));
  const types = EVENT_FILE_COLUMNS.map(({ name, type }) => `${name}: '${name === "occurred_at" ? "BIGINT" : type}'`);
  const columns = EVENT_FILE_COLUMNS.map(({ name }) =>
    name === "occurred_at" ? "to_timestamp(occurred_at / 1000.0) as occurred_at" : name,
  );
  await duckdb.run([
    {
      sql: `copy (select ${columns.join(", ")} from read_json('${file}.json', format = 'newline_delimited', columns = {${types.join(", ")}})
        order by occurred_at, log_id) to '${file}' (format parquet, compression zstd)`,
    },
  ]);
}
