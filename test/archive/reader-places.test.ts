import { writeFile } from "node:fs/promises";
import { getPriority } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { createArchiveReader, createSearchDuckdb, type ReaderPlace } from "#db/archive/archive-reader.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { makePipe } from "../support/make-pipe.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

test("the end of one long search's process ends neither another long search nor a quick one", async () => {
  const folder = makeTemporaryFolder("places");
  const create = (isUrgent = false) => createSearchDuckdb(folder, folder, { isUrgent });
  const [first, second, quick] = [create(), create(), create(true)];
  onTestFinished(async () => {
    for (const one of [first, second, quick]) await one.close();
  });
  const reader = createArchiveReader({
    duckdb: first,
    inPlaces: { quick: [quick], long: [first, second] },
    storage: createFolderStorage(folder),
    scratch: folder,
  });
  const leaving = new AbortController();
  const ended: string[] = [];
  /** Runs a statement that ends when its pipe is written to. */
  const run = (name: string, kind: ReaderPlace["kind"]) => {
    const pipe = path.join(folder, name);
    makePipe(pipe);
    const begin = () => (cpuMs: number) => void ended.push(`${name} ${cpuMs >= 0}`);
    const sql = `select a from read_csv('${pipe}', auto_detect = false, header = false, delim = ',', parallel = false, columns = {'a': 'VARCHAR'})`;
    const read = reader.inPlace({ kind, begin }).read([], [{ sql, values: [] }], leaving.signal);
    return { read, finish: () => writeFile(pipe, `${name}\n`) };
  };
  const killed = run("killed", "long");
  const [long, small] = [run("long", "long"), run("small", "quick")];
  await vi.waitFor(() => expect([first, second, quick].map((one) => one.pid())).not.toContain(null));
  const pid = first.pid() ?? 0;
  const priorityOf = (one: Duckdb) => getPriority(one.pid() ?? 0);
  await vi.waitFor(() => expect(priorityOf(second)).toBe(Math.min(19, priorityOf(quick) + 10)));
  process.kill(pid, "SIGKILL");
  // It runs once more, in another process.
  await vi.waitFor(() => expect([null, pid]).not.toContain(first.pid()));
  await Promise.all([long.finish(), small.finish()]);

  expect(await Promise.all([long.read, small.read])).toEqual([["long"], ["small"]]);
  leaving.abort(new Error("left"));
  await expect(killed.read).rejects.toThrow("left");
  await vi.waitFor(
    () => expect(ended.toSorted()).toEqual(["killed true", "killed true", "long true", "small true"]),
    20_000,
  );
});
