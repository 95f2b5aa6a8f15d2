import { parseConfig } from "#config/config.ts";
import { readRuntimeFile } from "./runtime-file.ts";

/**
 * Implements a container's health check: exit code 0 if the service of this machine answers /livez, or runs with roles
 * that serve no HTTP. It is a separate program, because loading the whole command line takes a second of CPU for every
 * probe.
 */
const TIMEOUT_MS = 3_000;

async function isAlive(): Promise<boolean> {
  const runtime = readRuntimeFile(parseConfig(process.env).dataDir);
  if (runtime === null) return false;
  if (runtime.httpUrl === null) return true;
  try {
    const response = await fetch(new URL("/livez", runtime.httpUrl), {
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return response.ok;
  } catch {
    return false;
  }
}

process.exit((await isAlive()) ? 0 : 1);
