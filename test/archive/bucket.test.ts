import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { listValidFiles } from "#db/archive/archive-files.ts";
import { HOUR_MS } from "#lib/units.ts";
import { shareS3Server } from "../support/s3-server.ts";
import { archiveDay, openTestFolder } from "./archive-folder.ts";
import { openStorage } from "./files/archive-world.ts";
import { NOW, openArchive, post, serve } from "./support.ts";

/** Searches whose archive day is in a bucket, and in Postgres no longer. */

const DAY = "2026-11-19";
const WINDOW = { from: NOW - 19 * HOUR_MS, to: NOW };
const OPEN = { from: NOW - HOUR_MS, to: NOW };
const SEARCH = "/shield/event-logs/101/search";
const QUESTIONS = [
  WINDOW,
  { ...WINDOW, query: "a", pageSize: 300, page: 1 },
  { ...WINDOW, groupBy: ["country"], buckets: 24 },
];
const server = await shareS3Server();

async function openBucketArchive() {
  const open = (cacheBytes?: number) =>
    openTestFolder((at) => openStorage(at, server.bucket("search"), cacheBytes));
  const folder = await open();
  const options = { zones: [101], eventsPerSecond: 0.01, historyHours: 19, parts: { files: folder.files } };
  const { ask, database, emulator } = await openArchive(options);
  const askAll = () => {
    const asked = QUESTIONS.map((body) => ask(SEARCH, post(body)));
    const list = ask("/shield/event-logs/101/11-19-2026");
    const span = { ...WINDOW, to: WINDOW.from + HOUR_MS };
    return Promise.all([...asked, list, ask("/shield/event-logs/101/export", post(span))]);
  };
  const before = await askAll();
  await archiveDay(database, folder, DAY);
  const files = await listValidFiles(database.db, { day: DAY });
  const names = files.map((file) => path.join(folder.folder, file.path));
  const emptyCache = () => {
    for (const name of names) rmSync(name);
  };
  const small = await serve(database, emulator, { files: (await open(1_000)).files });
  return {
    ask,
    askAll,
    before,
    folder,
    emptyCache,
    isCached: () => names.map((name) => existsSync(name)),
    small,
  };
}

const textsOf = (answers: readonly { readonly text: string }[]) => answers.map(({ text }) => text);

test("a day in a bucket is answered as it was in Postgres; while the bucket is away and its file is not cached, a 503 names the day", async () => {
  const { ask, askAll, before, folder, emptyCache, isCached, small } = await openBucketArchive();
  emptyCache();
  expect(textsOf(await askAll())).toEqual(textsOf(before));
  expect(isCached()).toEqual([true, true]);

  // What is cached needs no bucket.
  server.refuse = () => 503;
  expect(textsOf(await askAll())).toEqual(textsOf(before));
  emptyCache();
  for (const answer of await askAll()) {
    expect(answer.status).toBe(503);
    expect(answer.text).toContain(`The archive's file of ${DAY} cannot be fetched from the bucket now.`);
    expect(answer.headers.get("retry-after")).toBe("30");
  }
  expect((await ask(SEARCH, post({ ...OPEN, groupBy: ["country"] }))).status).toBe(200);
  server.refuse = () => null;
  expect(textsOf(await askAll())).toEqual(textsOf(before));
  expect(folder.damaged).toEqual([]);

  const refused = await small.ask(SEARCH, post({ ...WINDOW, query: "a" }));
  expect([refused.status, refused.text]).toEqual([
    503,
    expect.stringContaining("ask the operator to raise LONGWATCH_ARCHIVE_CACHE_GB"),
  ]);
  expect((await small.ask(SEARCH, post(OPEN))).status).toBe(200);
});
