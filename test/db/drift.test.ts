import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "../..");

test("schema files and migrations agree: generating from the schema would write nothing", async () => {
  // drizzle-kit only takes an output folder below the working directory.
  const copy = mkdtempSync(path.join(ROOT, "node_modules/.drift-"));
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  cpSync(path.join(ROOT, "migrations"), copy, { recursive: true });
  const before = new Set(readdirSync(copy, { recursive: true, encoding: "utf8" }));

  const { stdout } = await promisify(execFile)(
    path.join(ROOT, "node_modules/.bin/drizzle-kit"),
    [
      "generate",
      "--dialect=postgresql",
      "--schema=./db/schema/*.ts",
      `--out=./${path.relative(ROOT, copy)}`,
      "--casing=snake_case",
    ],
    { cwd: ROOT },
  );

  expect(stdout).toContain("No schema changes");
  expect(new Set(readdirSync(copy, { recursive: true, encoding: "utf8" }))).toEqual(before);
});
