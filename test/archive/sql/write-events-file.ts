import { writeFile } from "node:fs/promises";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { EVENT_FILE_COLUMNS } from "#model/archive-layout.ts";
import type { WafEvent } from "#model/waf-event.ts";

/** Writes events as an events file of the archive. */
export async function writeEventsFile(
  duckdb: Duckdb,
  file: string,
  events: readonly WafEvent[],
): Promise<void> {
  const rows = events.map(({ occurredAt, logId, ruleId, ...event }) => ({
    ...event,
    occurred_at: occurredAt,
    zone_id: 101,
    log_id: logId,
    rule_id: ruleId,
  }));
  await writeFile(`${file}.json`, rows.map((row) => JSON.stringify(row)).join("\n"));
  const types = EVENT_FILE_COLUMNS.map(
    ({ name, type }) => `${name}: '${name === "occurred_at" ? "BIGINT" : type}'`,
  );
  const columns = EVENT_FILE_COLUMNS.map(({ name }) =>
    name === "occurred_at" ? "to_timestamp(occurred_at / 1000.0) as occurred_at" : name,
  );
  const source = `read_json('${file}.json', format = 'newline_delimited', columns = {${types.join(", ")}})`;
  await duckdb.run([
    {
      sql: `copy (select ${columns.join(", ")} from ${source} order by occurred_at, log_id) to '${file}' (format parquet)`,
    },
  ]);
}
