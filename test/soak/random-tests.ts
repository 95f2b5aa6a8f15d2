import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../..");
const VITEST = path.join(ROOT, "node_modules/vitest/vitest.mjs");
/** Every test file loads this file, so every test file depends on it. */
const SETUP = path.join("test", "support", "random-tests.ts");
const IMPORT = /^import .*from "(?:fast-check|.*support\/sample\.ts)";$/m;

export interface RandomTestOptions {
  readonly seed: number;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Runs every test file that draws cases with fast-check, all of them with one seed, or that has cases which the gate leaves
 * out. Returns whether they passed.
 */
export async function runRandomTests({ seed, onProgress, signal }: RandomTestOptions): Promise<boolean> {
  onProgress(`random tests with TEST_SEED=${seed}`);
  const child = spawn(process.execPath, [VITEST, "related", "--run", ...listDrawing()], {
    cwd: ROOT,
    // The standard output is the soak's report.
    stdio: ["ignore", 2, 2],
    env: { ...process.env, TEST_SEED: String(seed), TEST_ALL: "1" },
  });
  const stop = () => child.kill("SIGTERM");
  signal.addEventListener("abort", stop);
  const [code] = (await once(child, "exit")) as [number | null];
  signal.removeEventListener("abort", stop);
  signal.throwIfAborted();
  onProgress(`random tests with TEST_SEED=${seed} ${code === 0 ? "passed" : "FAILED"}`);
  return code === 0;
}

/** Returns the files below `test` that draw cases or sample them: tests and their shared modules. */
function listDrawing(): string[] {
  return globSync("test/**/*.ts", { cwd: ROOT }).filter(
    (file) => file !== SETUP && IMPORT.test(readFileSync(path.join(ROOT, file), "utf8")),
  );
}
