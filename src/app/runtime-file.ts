import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";

const Runtime = z.object({
  // 0 and below are process groups, which always exist.
  pid: z.int().min(1),
  databaseUrl: z.string(),
  /** Address of HTTP; null if this process serves none. */
  httpUrl: z.string().nullable(),
  /** The address of the console in messages; null if none is known, missing if the service is of an older version. */
  consoleUrl: z.string().nullable().optional(),
  /** The emulator that replaces the platform; its key is valid for nothing else. */
  emulator: z
    .object({
      url: z.string(),
      accessKey: z.string(),
      requestsPerSecond: z.number(),
      zones: z.array(z.number()).default([]),
    })
    .nullable()
    .default(null),
  /** The configuration file of the service, absolute; null without one, or if the service is of an older version. */
  configFile: z.string().nullable().default(null),
  /** Settings by variable, as `config list` shows them, because another command's environment may differ. */
  settings: z.record(z.string(), z.string().nullable()).optional(),
});
export type Runtime = z.infer<typeof Runtime>;
/** A member with a default may be omitted. */
type WrittenRuntime = z.input<typeof Runtime>;

function fileIn(dataDir: string): string {
  return path.join(dataDir, "runtime.json");
}

/** Writes the address of the running service for other commands on this machine; only its user may read it. */
export function writeRuntimeFile(dataDir: string, runtime: WrittenRuntime): void {
  mkdirSync(dataDir, { recursive: true });
  // A new file each time: an existing file keeps its mode, and a reader must not see half a file.
  const temporary = `${fileIn(dataDir)}.new`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, `${JSON.stringify(runtime)}\n`, { mode: 0o600, flag: "wx" });
  renameSync(temporary, fileIn(dataDir));
}

/** Removes this process's entry; a successor's entry stays. */
export function removeRuntimeFile(dataDir: string): void {
  const written = parseRuntimeFile(dataDir);
  if (written === null || written.pid === process.pid) rmSync(fileIn(dataDir), { force: true });
}

/** Returns the running service; null if there is no readable file, or if its process has ended. */
export function readRuntimeFile(dataDir: string): Runtime | null {
  const runtime = parseRuntimeFile(dataDir);
  // In a container the process ids repeat, so an entry with this process's id is from an earlier process.
  return runtime !== null && runtime.pid !== process.pid && isOwnProcess(runtime.pid) ? runtime : null;
}

function parseRuntimeFile(dataDir: string): Runtime | null {
  try {
    return Runtime.parse(JSON.parse(readFileSync(fileIn(dataDir), "utf8")));
  } catch {
    return null;
  }
}

/** The file is for its user only, so a process of another user is not the service. */
function isOwnProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
