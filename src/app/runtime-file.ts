import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";

const Runtime = z.object({
  // 0 and below are process groups, which are always there.
  pid: z.int().min(1),
  databaseUrl: z.string(),
  /** Where HTTP listens; null where this process serves none. */
  httpUrl: z.string().nullable(),
  /** The emulator that stands in for the platform; its key opens nothing else. */
  emulator: z
    .object({ url: z.string(), accessKey: z.string(), requestsPerSecond: z.number() })
    .nullable()
    .default(null),
  /** By variable, as `config list` shows them: the environment of another command may have others. */
  settings: z.record(z.string(), z.string().nullable()).optional(),
});
export type Runtime = z.infer<typeof Runtime>;
/** What is written may leave out what has a default. */
type WrittenRuntime = z.input<typeof Runtime>;

function fileIn(dataDir: string): string {
  return path.join(dataDir, "runtime.json");
}

/** Tells the other commands on this machine where the running service is; only its user may read it. */
export function writeRuntimeFile(dataDir: string, runtime: WrittenRuntime): void {
  mkdirSync(dataDir, { recursive: true });
  // A new file each time: one that is there keeps its mode, and a reader must not meet half a file.
  const fresh = `${fileIn(dataDir)}.new`;
  rmSync(fresh, { force: true });
  writeFileSync(fresh, `${JSON.stringify(runtime)}\n`, { mode: 0o600, flag: "wx" });
  renameSync(fresh, fileIn(dataDir));
}

/** Takes away what this process wrote; a successor's entry stays. */
export function removeRuntimeFile(dataDir: string): void {
  const written = parseRuntimeFile(dataDir);
  if (written === null || written.pid === process.pid) rmSync(fileIn(dataDir), { force: true });
}

/** The running service, or null: no file, an unreadable one, or one whose process is gone. */
export function readRuntimeFile(dataDir: string): Runtime | null {
  const runtime = parseRuntimeFile(dataDir);
  // In a container every life has the same few ids: one's own id was left by a predecessor.
  return runtime !== null && runtime.pid !== process.pid && isAlive(runtime.pid) ? runtime : null;
}

function parseRuntimeFile(dataDir: string): Runtime | null {
  try {
    return Runtime.parse(JSON.parse(readFileSync(fileIn(dataDir), "utf8")));
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
