import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import type { PostgresOutage } from "./supervise-postgres.ts";

const BYTES = 4_096;

const Outage = z.object({
  sinceMs: z.number(),
  /** Null while the server is down. */
  untilMs: z.number().nullable(),
  failedRestarts: z.number(),
  reason: z.string(),
  lines: z.array(z.string()).readonly(),
  isDiskFull: z.boolean(),
});
/** The last time that the embedded Postgres ended by itself, as the other commands on this machine read it. */
export type RecordedOutage = z.infer<typeof Outage>;

function fileIn(dataDir: string): string {
  return path.join(dataDir, "postgres-outage.json");
}

/**
 * Creates the empty file in which outages are recorded. Returns a function that writes an outage into it. The file has
 * its full size from the start and is overwritten in place, so that a full disk does not prevent a write.
 */
export function openOutageFile(dataDir: string): (outage: PostgresOutage, untilMs: number | null) => void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(fileIn(dataDir), " ".repeat(BYTES), { mode: 0o600 });
  return (outage, untilMs) => write(dataDir, { ...outage, untilMs });
}

function write(dataDir: string, outage: RecordedOutage): void {
  // If not all lines fit, the oldest lines are left out.
  const reason = outage.reason.slice(0, 500);
  for (let first = 0; first <= outage.lines.length; first++) {
    const text = JSON.stringify({ ...outage, reason, lines: outage.lines.slice(first) });
    const bytes = Buffer.alloc(BYTES, " ");
    if (Buffer.byteLength(text) > BYTES) continue;
    bytes.write(text);
    overwrite(fileIn(dataDir), bytes);
    return;
  }
}

function overwrite(file: string, bytes: Buffer): void {
  const descriptor = openSync(file, "r+");
  try {
    writeSync(descriptor, bytes, 0, bytes.length, 0);
  } finally {
    closeSync(descriptor);
  }
}

/** Returns the last outage since the service was started, or null. */
export function readOutageFile(dataDir: string): RecordedOutage | null {
  try {
    return Outage.parse(JSON.parse(readFileSync(fileIn(dataDir), "utf8")));
  } catch {
    return null;
  }
}
