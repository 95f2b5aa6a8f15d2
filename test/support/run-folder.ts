import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { isAlive } from "#lib/process.ts";

/** The folder in which Linux keeps files in memory. */
const MEMORY = "/dev/shm";
/** Maximum size of a run's files, with a reserve. */
const NEEDED_BYTES = 6 * 2 ** 30;
const ABANDONED_AFTER_MS = 3_600_000;
const NAME = /^longwatch-run-(\d+)-/;

/**
 * Creates the folder of a run's temporary files: in memory if there is room, else on disk. Each of the run's several
 * hundred databases is five hundred files, and creating and removing so many files costs a disk's file system seven
 * times as much as memory's. Removes the folders that killed runs have left in memory.
 */
export function createRunFolder(): string {
  const folder = mkdtempSync(path.join(isMemoryRoomy() ? MEMORY : tmpdir(), `longwatch-run-${process.pid}-`));
  // If root runs the tests, Postgres runs as another user, which has to enter the folder.
  chmodSync(folder, 0o755);
  return folder;
}

function isMemoryRoomy(): boolean {
  try {
    removeAbandoned();
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= NEEDED_BYTES && readAvailableMemory() >= NEEDED_BYTES && mayExecute();
  } catch {
    return false;
  }
}

/** Returns bytes. `os.freemem()` is not used, because it counts the memory of the file cache as used. */
function readAvailableMemory(): number {
  const [, kibibytes] = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8")) ?? [];
  return Number(kibibytes ?? 0) * 1_024;
}

/**
 * Returns whether files in the folder may be executed. Containers may mount it without that right, and tests start
 * programs that they have written.
 */
function mayExecute(): boolean {
  const folder = mkdtempSync(path.join(MEMORY, `longwatch-run-${process.pid}-`));
  const program = path.join(folder, "program");
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
  const { status } = spawnSync(program);
  rmSync(folder, { recursive: true });
  return status === 0;
}

function removeAbandoned(): void {
  for (const name of readdirSync(MEMORY)) {
    const [, pid] = NAME.exec(name) ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const folder = path.join(MEMORY, name);
    try {
      // A run of another container may use the same memory. Its process is not visible here, but its files are new.
      if (Date.now() - statSync(folder).mtimeMs > ABANDONED_AFTER_MS) rmSync(folder, { recursive: true });
    } catch {
      // The folder belongs to another user, or another run has removed it.
    }
  }
}
