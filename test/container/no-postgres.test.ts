import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";

test("where the embedded Postgres is not installed, a start without a database says what to set", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-production-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(path.join(folder, "package.json"), '{"type":"module"}');
  const copy = path.join(folder, "binaries.ts");
  copyFileSync(path.join(import.meta.dirname, "../../src/store/embedded/binaries.ts"), copy);
  const { findPostgresHome } = (await import(pathToFileURL(copy).href)) as { findPostgresHome: () => string };
  expect(findPostgresHome).toThrow(/is not installed; set DATABASE_URL to a Postgres server$/);
});
