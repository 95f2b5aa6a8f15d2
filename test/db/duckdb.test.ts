import { readdirSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { createDuckdb } from "#db/duckdb/duckdb.ts";
import { DuckdbError, type DuckdbErrorCode } from "#db/duckdb/duckdb-messages.ts";
import { isAlive } from "#lib/process.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const root = makeTemporaryFolder("duckdb");
const folder = path.join(root, "it's allowed");
const spillInto = path.join(root, "spill");
const options = { folders: [folder], spillInto, memoryBytes: 128_000_000, residentBytes: 500_000_000 };
const duckdb = createDuckdb(options);
afterAll(() => duckdb.close());

/** Runs for minutes. */
const ENDLESS = { sql: "select sum(a.range * b.range) from range(1000000) a, range(1000000) b" };

const codeOf = (run: Promise<unknown>) =>
  run.then(
    () => "none",
    (thrown: DuckdbError) => thrown.code,
  );

test("duckdb returns every statement's rows, with parameters bound and never part of the statement", async () => {
  const hostile = `'); drop table t; --"\n\\`;

  const results = await duckdb.run([
    {
      sql: "create temp table t as select $1::varchar as text, $2::bigint as number",
      values: [hostile, 2 ** 40],
    },
    {
      sql: "select text, number, list_contains($1, text), $2::varchar from t",
      values: [["x", hostile], null],
    },
    { sql: "select 'a'::blob, to_timestamp(1)" },
  ]);

  expect(results.slice(1)).toEqual([
    [[hostile, 2n ** 40n, true, null]],
    [[Buffer.from("a"), new Date(1_000)]],
  ]);
});

test.each([
  "copy (select 1) to '/tmp/longwatch-outside.parquet'",
  "select * from read_text('/etc/passwd')",
  "select * from glob('/etc/*')",
  "attach '/tmp/longwatch-outside.db' as o",
  "install httpfs",
  "load httpfs",
  "select * from 'http://127.0.0.1:1/x.parquet'",
  "set threads = 8",
  "set enable_external_access = true",
])("duckdb refuses: %s", async (sql) => {
  await expect(duckdb.run([{ sql }])).rejects.toThrow(
    /Permission Error|configuration has been locked|Cannot change/,
  );
});

test("duckdb frees a caller that hangs up at once, and the process goes on", async () => {
  await duckdb.run([{ sql: "select 1" }]);
  const pid = duckdb.pid();
  let controller = new AbortController();
  // At any moment, also before the statement has begun.
  for (const ms of [0, 1, 5, 50]) {
    const run = duckdb.run([ENDLESS], { signal: controller.signal });
    setTimeout(() => controller.abort(new Error("hung up")), ms);
    await expect(run).rejects.toThrow("hung up");
    controller = new AbortController();
  }

  expect(await duckdb.run([{ sql: "select 1" }])).toEqual([[[1]]]);
  expect(duckdb.pid()).toBe(pid);
});

test("duckdb ends statements at their time limit", async () => {
  expect(await codeOf(duckdb.run([ENDLESS], { timeoutMs: 50 }))).toBe(
    "DUCKDB_TIMEOUT" satisfies DuckdbErrorCode,
  );
});

test("duckdb refuses more rows than the caller takes", async () => {
  expect(await codeOf(duckdb.run([{ sql: "select * from range(11)" }], { maxRows: 10 }))).toBe("DUCKDB_ROWS");
});

test("the death of duckdb's process fails its statements, and the next request starts another one", async () => {
  await duckdb.run([{ sql: "select 1" }]);
  const run = codeOf(duckdb.run([ENDLESS]));
  process.kill(duckdb.pid() ?? 0, "SIGKILL");

  expect(await run).toBe("DUCKDB_DIED");
  expect(await duckdb.run([{ sql: "select 1" }])).toEqual([[[1]]]);
});

test("duckdb's process is killed when it takes more memory than its bound, and leaves no spilled data", async () => {
  // Less than any process takes.
  const small = createDuckdb({ ...options, spillInto: path.join(root, "grown"), residentBytes: 10_000_000 });

  await expect(small.run([ENDLESS])).rejects.toThrow(/took \d+ MB, more than 10 MB/);

  await vi.waitFor(() => expect(readdirSync(path.join(root, "grown"))).toEqual([]));
  await small.close();
});

test("duckdb's process ends when it is idle, and its folder is removed", async () => {
  const short = createDuckdb({ ...options, spillInto: path.join(root, "idle"), idleMs: 1 });
  await short.run([{ sql: "select 1" }]);
  const pid = short.pid() ?? 0;

  await vi.waitFor(() => expect(short.pid()).toBeNull());
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false));
  await vi.waitFor(() => expect(readdirSync(path.join(root, "idle"))).toEqual([]));
});
