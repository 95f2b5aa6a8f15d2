import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { listLoose, makePrivate } from "#lib/files.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { startServiceProcess } from "../faults/service-process.ts";

function openFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-private-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder and a file with the modes of older versions. */
function leaveOpen(folder: string): string {
  const file = path.join(folder, "archive", "events", "zone=101", "part.parquet");
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, "addresses");
  for (let at = path.dirname(file); at !== path.dirname(folder); at = path.dirname(at)) chmodSync(at, 0o755);
  chmodSync(file, 0o644);
  return file;
}

test("S25: a start closes the data folder of an older version, and what it writes is for its owner only", async () => {
  const folder = openFolder();
  const file = leaveOpen(folder);
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const service = startServiceProcess({
    DATABASE_URL: database.url,
    LONGWATCH_DATA_DIR: folder,
    LONGWATCH_ARCHIVE_DIR: path.join(folder, "archive"),
    EDGE_API_URL: "http://127.0.0.1:9",
    EDGE_API_KEY: "key",
    EDGE_SHIELD_ZONES: "101",
  });
  onTestFinished(async () => {
    service.child.kill("SIGKILL");
    await service.exited;
  });
  await expect.poll(() => service.printed(), { timeout: 30_000 }).toContain("service started");
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(path.join(folder, "runtime.json")).mode & 0o777).toBe(0o600);
  expect([...listLoose(folder)]).toEqual([]);
});

test("makePrivate changes neither the target of a link nor an excluded folder", () => {
  const [folder, other] = [openFolder(), openFolder()];
  const target = leaveOpen(other);
  symlinkSync(other, path.join(folder, "link"));
  mkdirSync(path.join(folder, "postgres"));
  chmodSync(path.join(folder, "postgres"), 0o750);
  const file = leaveOpen(folder);
  expect([...listLoose(folder, ["postgres"])].length).toBe(5);
  expect(makePrivate(folder, ["postgres"])).toEqual([]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(target).mode & 0o777).toBe(0o644);
  expect(statSync(path.join(folder, "postgres")).mode & 0o777).toBe(0o750);
});
