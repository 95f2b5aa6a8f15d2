import { readdir, readFile, rename, stat, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { beforeEach, expect, it } from "vitest";
import { listValidFiles } from "#db/archive/archive-files.ts";
import { noteDamage } from "#db/archive/bring-file.ts";
import { HOUR_MS } from "#lib/units.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { type ArchiveFolder, archiveDay, openFolder, openTestFolder } from "./archive-folder.ts";
import { type Ask, NOW, openArchive, post, serve } from "./support.ts";

const WINDOW = { from: NOW - 17 * HOUR_MS, to: NOW };
const SEARCH = "/shield/event-logs/101/search";
const DAMAGED = "The archive's file of 2026-11-19 is missing or damaged.";

const folder = await openTestFolder();
const { database, emulator } = await openArchive({
  zones: [101],
  eventsPerSecond: 0.01,
  historyHours: 17,
  parts: { files: folder.files },
});
await archiveDay(database, folder, "2026-11-19");
const file = await findEventsFile(folder);
const whole = await readFile(file);
beforeEach(() => writeFile(file, whole));

async function findEventsFile({ folder }: ArchiveFolder): Promise<string> {
  const day = path.join(folder, "events/zone=101/day=2026-11-19");
  const [name = ""] = (await readdir(day)).filter((name) => name.endsWith(".parquet"));
  return path.join(day, name);
}

/** The archive's HTTP in a process that has not read the file yet. */
async function openReader(open = createFolderStorage) {
  const { files, damaged } = await openFolder(open, folder.folder);
  return { ...(await serve(database, emulator, { files })), damaged };
}

async function expectDamaged(ask: Ask): Promise<void> {
  for (const body of [WINDOW, { ...WINDOW, query: "a" }, { ...WINDOW, groupBy: ["country"] }]) {
    const answer = await ask(SEARCH, post({ ...body, page: 30 }));
    expect(answer.status).toBe(503);
    expect(answer.text).toContain(DAMAGED);
  }
  expect(
    (await ask("/shield/event-logs/101/export", post({ ...WINDOW, to: WINDOW.from + HOUR_MS }))).text,
  ).toContain(DAMAGED);
  expect((await ask("/shield/event-logs/101/11-19-2026")).text).toContain(DAMAGED);
  const open = await ask(SEARCH, post({ ...WINDOW, from: NOW - HOUR_MS, groupBy: ["country"] }));
  expect(open.status).toBe(200);
}

it("answers 503 with the day while a file is missing or damaged, and answers again when the file is whole", async () => {
  const { ask, damaged } = await openReader();
  const wanted = { ...WINDOW, groupBy: ["country"] };

  // Nothing in Parquet notices a changed byte.
  const changed = Buffer.from(whole);
  changed[1_000] = (changed[1_000] ?? 0) ^ 1;
  await writeFile(file, changed);
  await expectDamaged(ask);
  expect(damaged.at(-1)?.damage).toContain("has another SHA-256");

  await rename(file, `${file}.away`);
  await expectDamaged(ask);
  expect(damaged.at(-1)?.damage).toBe("is missing");

  await writeFile(file, whole);
  const answer = await ask(SEARCH, post(wanted));
  expect(answer.status).toBe(200);

  // The file was found whole before.
  await rename(file, `${file}.away`);
  await expectDamaged(ask);
});

it("answers 503 for a file that changes after it was found whole, also if its size and time stay", async () => {
  const { ask } = await openReader();
  expect((await ask(SEARCH, post({ ...WINDOW, groupBy: ["country"] }))).status).toBe(200);
  const { mtime } = await stat(file);
  await flipBit(file);
  await utimes(file, mtime, mtime);

  await expectDamaged(ask);
});

it("does not read a file that was reported as damaged elsewhere until it is found whole", async () => {
  // A disk that returns other bytes changes neither size nor time.
  const withoutSigns = (folder: string) => ({
    ...createFolderStorage(folder),
    touch: async () => "as before",
  });
  const { ask } = await openReader(withoutSigns);
  const wanted = post({ ...WINDOW, groupBy: ["country"] });
  expect((await ask(SEARCH, wanted)).status).toBe(200);
  await flipBit(file);
  const [manifest] = await listValidFiles(database.db, { day: "2026-11-19", kind: "events" });
  if (manifest === undefined) throw new Error("no file");
  await noteDamage(database.db, manifest, "has another SHA-256");

  await expectDamaged(ask);

  await writeFile(file, whole);
  expect((await ask(SEARCH, wanted)).status).toBe(200);
});

async function flipBit(file: string): Promise<void> {
  const bytes = await readFile(file);
  bytes[1_000] = (bytes[1_000] ?? 0) ^ 1;
  await writeFile(file, bytes);
}
