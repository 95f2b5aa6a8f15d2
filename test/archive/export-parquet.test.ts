import { readdir } from "node:fs/promises";
import path from "node:path";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { expect, it } from "vitest";
import { HOUR_MS } from "../../src/lib/units.ts";
import { makeKey } from "../http/start-archive.ts";
import { archiveDay, openTestFolder } from "./archive-folder.ts";
import { NOW, openArchive, post } from "./support.ts";

const PATH = "/shield/event-logs/101/export";
const WINDOW = { from: NOW - 30 * HOUR_MS, to: NOW };
const PARQUET = { accept: "application/vnd.apache.parquet" };

it("exports archived and open events as one Parquet file with the rows of the other forms, and leaves no file behind", async () => {
  const folder = await openTestFolder();
  const { ask, database, http, key } = await openArchive({ parts: { files: folder.files } });
  await archiveDay(database, folder, "2026-11-19");
  const readRows = async (body: object) => {
    const response = await fetch(http.url + PATH, {
      ...post(body),
      headers: { AccessKey: key, "content-type": "application/json", ...PARQUET },
    });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, PARQUET.accept]);
    return parquetReadObjects({ file: await response.arrayBuffer(), compressors });
  };
  const readLines = async (body: object) =>
    (await ask(PATH, post(body, { accept: "application/x-ndjson" }))).text
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  for (const more of [{}, { query: "php" }, { query: "found nowhere" }, { to: WINDOW.from + HOUR_MS }]) {
    const body = { ...WINDOW, ...more };
    const rows = (await readRows(body)).map(
      ({ occurred_at, log_id, rule_id, message: _message, ...row }) => ({
        ...row,
        timestamp: (occurred_at as Date).getTime(),
        logId: log_id,
        ruleId: rule_id,
      }),
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
