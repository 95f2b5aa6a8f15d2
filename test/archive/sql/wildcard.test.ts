import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { readSearch } from "#archive/rules/query/read-search.ts";
import { toClauses } from "#archive/rules/sql/to-condition.ts";
import { createSearchDuckdb } from "#db/archive/archive-reader.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";

// DuckDB's LIKE takes minutes for this text, and cannot be interrupted: its process was killed, with every other search.
test("a wildcard of many parts is decided for a long repetitive text before the time limit", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "longwatch-wildcard-"));
  const duckdb = createSearchDuckdb(folder, folder);
  onTestFinished(async () => {
    await duckdb.close();
    await rm(folder, { recursive: true, force: true });
  });
  const filters = [{ field: "url", op: "wildcard", value: ["*a*a*a*a*b*c"] }];
  const read = readSearch({ from: 1, to: 2, filters }, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  const { sql, values } = toClauses(planSearch(read.search), ARCHIVE_FORMAT);
  const texts = ["/?q=" + "a".repeat(300), "/aaaa.b\n*(c"];
  const rows = texts.map((text) => `select '${text}' as url`).join(" union all ");
  const [, found] = await duckdb.run(
    [{ sql: `create temp table urls as ${rows}` }, { sql: `select url from urls where ${sql}`, values }],
    { timeoutMs: 10_000 },
  );
  expect(found).toEqual([[texts[1]]]);
});
