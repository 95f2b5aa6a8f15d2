import { availableParallelism } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { defineConfig } from "vitest/config";
import { LongFilesFirst } from "#test/support/long-files-first.ts";

const quickImports = pathToFileURL(path.join(import.meta.dirname, "src", "app", "quick-imports.ts"));

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["patience.ts", "quick-processes.ts", "random-tests.ts"].map(
      (name) => `test/support/${name}`,
    ),
    // Tests are shuffled within their file, files by the sequencer.
    sequence: { shuffle: { tests: true }, sequencer: LongFilesFirst },
    // Files share their worker's process and its modules, so that modules load once per worker and not once per file.
    // A file puts back what it changes in the process, such as its environment.
    isolate: false,
    // Node imports the TypeScript itself, as it does for the service. Vite's own runner would rewrite each module and look up
    // each imported name at each use, which costs a tenth of the tests' time.
    experimental: { viteModuleRunner: false },
    // Many tests wait most of their time: for a tick, a timeout, or a process of their own.
    maxWorkers: 2 * availableParallelism() + 2,
    // These end what hangs and promise nothing: the machine may be busy.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
    // A young generation of this size is collected less often, and most of what a test makes is dead by then.
    execArgv: [`--import=${quickImports.href}`, "--max-semi-space-size=64"],
    // For the processes that tests start: they need not compile the service anew, each of them.
    env: {
      NODE_COMPILE_CACHE: path.join(import.meta.dirname, "node_modules", ".cache", "node-compile"),
    },
  },
});
