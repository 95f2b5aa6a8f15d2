import { readdir } from "node:fs/promises";
import path from "node:path";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { expect, it } from "vitest";
import { HOUR_MS } from "#lib/units.ts";
import { EVENT_FILE_COLUMNS } from "#model/archive-layout.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { makeKey } from "../faces/http/start-archive.ts";
import { archiveDay, openTestFolder } from "./archive-folder.ts";
import { NOW, openArchive, post } from "./support.ts";

const PATH = "/shield/event-logs/101/export";
const WINDOW = { from: NOW - 17 * HOUR_MS, to: NOW };
const PARQUET = { accept: "application/vnd.apache.parquet" };

it("exports archived and open events as one Parquet file with the rows of the other forms, and leaves no file behind", async () => {
  const folder = await openTestFolder();
  const { ask, database, http, key } = await openArchive({
    zones: [101],
    eventsPerSecond: 0.008,
    historyHours: 17,
    parts: { files: folder.files },
  });
  const before = await database.pool.query<{ log_id: string; matched_key: number | null }>(
    `select log_id, coalesce(method, '') as method, coalesce(request_id, '') as request_id, matched_key, facts
     from waf_events where zone_id = 101`,
  );
  await archiveDay(database, folder, "2026-11-19");
  const stored = new Map(before.rows.map(({ log_id, ...facts }) => [log_id, facts]));
  expect(before.rows.filter(({ matched_key }) => matched_key !== null).length).toBeGreaterThan(10);
  const readRows = async (body: object) => {
    const response = await fetch(http.url + PATH, {
      ...post(body),
      headers: { AccessKey: key, "content-type": "application/json", ...PARQUET },
    });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, PARQUET.accept]);
    const file = await response.arrayBuffer();
    const columns = parquetMetadata(file)
      .schema.slice(1)
      .map(({ name, field_id }) => ({ name, fieldId: field_id }));
    expect(columns).toEqual(EVENT_FILE_COLUMNS.map(({ name, fieldId }) => ({ name, fieldId })));
    return parquetReadObjects({ file, compressors });
  };
  const readLines = async (body: object) =>
    (await ask(PATH, post(body, { accept: "application/x-ndjson" }))).text
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  const nowhere = { query: "found nowhere" };
  const parts = [{ to: WINDOW.from + HOUR_MS }, { ...nowhere, from: NOW - HOUR_MS }];
  for (const more of [{}, { query: "php" }, nowhere, ...parts]) {
    const body = { ...WINDOW, ...more };
    const rows = (await readRows(body)).map(
      ({ occurred_at, zone_id, log_id, route, rule_id, message: _message, ...columns }) => {
        const { method, request_id, matched_key, facts, host, path: urlPath, ...row } = columns;
        expect([zone_id, route]).toEqual([101, expect.stringMatching(/^(?:list|search)$/)]);
        const url = String(row["url"]);
        expect([host, urlPath]).toEqual([toUrlPart("host", url), toUrlPart("path", url)]);
        expect(stored.get(String(log_id))).toEqual({ method, request_id, matched_key, facts });
        return { ...row, timestamp: (occurred_at as Date).getTime(), logId: log_id, ruleId: rule_id };
      },
    );
    const lines = await readLines(body);
    const byId = (one: Record<string, unknown>) => String(one["logId"]);
    const sorted = (all: Record<string, unknown>[]) =>
      all.toSorted((one, other) => byId(one).localeCompare(byId(other)));
    expect(sorted(rows)).toEqual(sorted(lines));
    expect(lines.length > 0).toBe(!("query" in more) || more.query === "php");
  }
  const left = async () =>
    (await readdir(path.join(folder.folder, "scratch"))).filter((name) => !name.startsWith("spill-"));
  await expect.poll(left).toEqual([]);

  const masked = await makeKey(database, "operator", { isMasked: true });
  const refused = await ask(PATH, { ...post(WINDOW, PARQUET), key: masked.key });
  expect([refused.status, refused.text]).toEqual([406, expect.stringContaining("use text/csv")]);
});
