import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";

const Runtime = z.object({
  pid: z.int(),
  databaseUrl: z.string(),
  /** Where HTTP listens; null where this process serves none. */
  httpUrl: z.string().nullable(),
});
export type Runtime = z.infer<typeof Runtime>;

function fileIn(dataDir: string): string {
  return path.join(dataDir, "runtime.json");
}

/** Tells the other commands on this machine where the running service is; only its user may read it. */
export function writeRuntimeFile(dataDir: string, runtime: Runtime): void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(fileIn(dataDir), `${JSON.stringify(runtime)}\n`, { mode: 0o600 });
}

export function removeRuntimeFile(dataDir: string): void {
  rmSync(fileIn(dataDir), { force: true });
}

/** The running service, or null: no file, an unreadable one, or one whose process is gone. */
export function readRuntimeFile(dataDir: string): Runtime | null {
  try {
    const runtime = Runtime.parse(JSON.parse(readFileSync(fileIn(dataDir), "utf8")));
    process.kill(runtime.pid, 0);
    return runtime;
  } catch {
    return null;
  }
}
