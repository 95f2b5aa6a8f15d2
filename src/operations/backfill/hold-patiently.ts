import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "#db/client.ts";
import { type HeldLease, holdLease } from "#db/postgres/hold-lease.ts";
import { BackfillError } from "./backfill-error.ts";

/** Short, because the next command must wait for the lease of a killed command. */
const LEASE_TTL_MS = 15_000;
const LOOK_EVERY_MS = 250;

/**
 * Runs `fn` with the lease. While another process holds the lease, calls `onWait` once and waits up to `waitMs`.
 * @throws {BackfillError} when the lease is still held after `waitMs`.
 */
export async function holdPatiently<T>(
  database: Database,
  { name, waitMs, onWait }: { name: string; waitMs: number; onWait: () => void },
  fn: (lease: HeldLease) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const until = performance.now() + waitMs;
  for (let isFirst = true; ; isFirst = false) {
    signal.throwIfAborted();
    const held = await holdLease(database, { name, ttlMs: LEASE_TTL_MS }, async (lease) => ({
      result: await fn(lease),
    }));
    if (held !== null) return held.result;
    if (performance.now() >= until)
      throw new BackfillError(
        "BACKFILL_HELD",
        `another process holds the lease ${name}; try again when that process has finished`,
      );
    if (isFirst) onWait();
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}
