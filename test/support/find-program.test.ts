import { globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { findAlertmanager } from "../delivery/channels/alertmanager/alertmanager-process.ts";
import { findProgram } from "./find-program.ts";
import { findRedisServer, findTlsRedisServer } from "./redis.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

/** Programs that POSIX and Node guarantee on every machine that runs the tests. */
const ALWAYS_THERE = ["sh", "/bin/sh", "ps", "mkfifo"];
const TESTS = path.join(import.meta.dirname, "..");

function usePath(...folders: readonly string[]): void {
  vi.stubEnv("PATH", folders.join(path.delimiter));
  onTestFinished(() => void vi.unstubAllEnvs());
}

test("findProgram returns the first name that is an executable file on PATH", () => {
  const [first, second] = [makeTemporaryFolder("path"), makeTemporaryFolder("path")];
  mkdirSync(path.join(first, "folder"));
  writeFileSync(path.join(first, "text"), "", { mode: 0o644 });
  writeFileSync(path.join(second, "program"), "", { mode: 0o755 });
  symlinkSync(path.join(second, "gone"), path.join(second, "broken"));
  usePath(first, "", second);
  expect(findProgram("folder", "text", "broken", "missing", "program")).toBe("program");
  expect(findProgram("folder", "text", "broken", "missing")).toBeNull();
});

test("no server is found on a PATH without one, and none is started", () => {
  usePath(makeTemporaryFolder("path"));
  expect([findRedisServer(), findTlsRedisServer(), findAlertmanager()]).toEqual([null, null, null]);
});

test("tests start a program that a machine may lack only by the name that findProgram returned", () => {
  const byName = /\b(?:spawn|spawnSync|execFile|execFileSync|fork)\)?\(\s*"([^"]+)"/g;
  const started = globSync("**/*.ts", { cwd: TESTS, exclude: ["bench/**"] }).flatMap((file) =>
    [...readFileSync(path.join(TESTS, file), "utf8").matchAll(byName)].map(([, name]) => `${file}: ${name}`),
  );
  expect(started).not.toEqual([]);
  expect(started.filter((one) => !ALWAYS_THERE.some((name) => one.endsWith(`: ${name}`)))).toEqual([]);
});
