import { mkdirSync, readdirSync, statSync, utimesSync } from "node:fs";
import path from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { openArchiveFiles } from "#app/open-archive-store.ts";
import { createStopStack } from "#lib/process.ts";
import { HOUR_MS } from "#lib/units.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { silent } from "../ingest/ingest-support.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("folders of killed searches are removed at a start and every hour, folders of live processes stay", async () => {
  const dataDir = makeTemporaryFolder("scratch");
  const scratch = path.join(dataDir, "scratch");
  const leave = (name: string, ageMs: number) => {
    mkdirSync(path.join(scratch, name), { recursive: true });
    const at = new Date(Date.now() - ageMs);
    utimesSync(path.join(scratch, name), at, at);
  };
  leave("search-killed", 2 * HOUR_MS);
  leave("search-other", HOUR_MS / 2);
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  const stack = createStopStack((_, error) => {
    throw error;
  });
  const storage = createFolderStorage(path.join(dataDir, "archive"));
  const config = { dataDir, http: { queryTimeoutMs: 1 } } as never;
  await openArchiveFiles({ database: {} as never, config, storage, log: silent }, stack);
  expect(readdirSync(scratch)).toContain("search-other");
  expect(readdirSync(scratch)).not.toContain("search-killed");

  const own = readdirSync(scratch).find((name) => name !== "search-other") ?? "";
  vi.advanceTimersByTime(HOUR_MS);
  await vi.waitFor(() => expect(readdirSync(scratch)).toEqual([own]));
  await vi.waitFor(() => expect(statSync(path.join(scratch, own)).mtimeMs).toBeCloseTo(Date.now(), -3));
  await stack.stop();
  expect(readdirSync(scratch)).toEqual([]);
});
