import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll } from "vitest";

const made: string[] = [];
afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** Creates a folder for this test file and removes it after the last test. */
export function makeTemporaryFolder(name: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), `longwatch-${name}-`));
  made.push(folder);
  return folder;
}
