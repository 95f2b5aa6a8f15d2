import { writeFile } from "node:fs/promises";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { ARCHIVE_FORMAT, EVENT_FILE_COLUMNS } from "#model/archive-layout.ts";
import { toUrlPart } from "#model/record-parts.ts";
import type { WafEvent } from "#model/waf-event.ts";

/** Writes events as an events file of the archive, of a version. */
export async function writeEventsFile(
  duckdb: Duckdb,
  file: string,
  events: readonly WafEvent[],
  format = ARCHIVE_FORMAT,
): Promise<void> {
  const rows = events.map(({ occurredAt, logId, ruleId, requestId, matchedKey, ...event }) => ({
    ...event,
    occurred_at: occurredAt,
    zone_id: 101,
    log_id: logId,
    rule_id: ruleId,
    request_id: requestId,
    matched_key: matchedKey,
    host: event.url === null ? null : toUrlPart("host", event.url),
    path: event.url === null ? null : toUrlPart("path", event.url),
  }));
  await writeFile(`${file}.json`, rows.map((row) => JSON.stringify(row)).join("\n"));
  const types = EVENT_FILE_COLUMNS.map(
    ({ name, type }) => `${name}: '${name === "occurred_at" ? "BIGINT" : type}'`,
  );
  const columns = EVENT_FILE_COLUMNS.filter(({ since }) => since <= format).map(({ name }) =>
    name === "occurred_at" ? "to_timestamp(occurred_at / 1000.0) as occurred_at" : name,
  );
  const source = `read_json('${file}.json', format = 'newline_delimited', columns = {${types.join(", ")}})`;
  await duckdb.run([
    {
      sql: `copy (select ${columns.join(", ")} from ${source} order by occurred_at, log_id) to '${file}' (format parquet)`,
    },
  ]);
}
