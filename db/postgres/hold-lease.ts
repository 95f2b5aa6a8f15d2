/** Holds a lease while work runs, and names who holds it. */

import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "#lib/errors.ts";
import { isAlive } from "#lib/process.ts";
import type { Database } from "../client.ts";
import { acquireLease, readHolder, releaseLease, renewLease } from "./leases.ts";

export interface OwnedLease {
  readonly name: string;
  readonly fence: number;
  /** Aborts when a renewal finds the lease taken, because later work could not commit. */
  readonly lost: AbortSignal;
}

/**
 * Runs `fn` while holding the lease, renews the lease in the background and gives it back at the end. Returns null
 * without running `fn` while another process holds the lease. The lease of a process of this machine that has ended,
 * for example by a kill, is taken over at once. The lease is only a hint: the commits of `fn` must assert the fence.
 */
export async function holdLease<T>(
  database: Database,
  { name, ttlMs }: { name: string; ttlMs: number },
  fn: (lease: OwnedLease) => Promise<T>,
): Promise<T | null> {
  const fence = await take(database, { name, ttlMs });
  if (fence === null) return null;
  const lost = new AbortController();
  const renew = async () => {
    if (!(await renewLease(database.db, { name, fence, ttlMs })))
      lost.abort(new Error(`lease ${name} was lost`));
  };
  // A failed renewal does not prove a loss. The next renewal or the fence decides.
  const timer = setInterval(() => void renew().catch(() => undefined), ttlMs / 3);
  try {
    return await fn({ name, fence, lost: lost.signal });
  } finally {
    clearInterval(timer);
    await releaseLease(database.db, { name, fence }).catch(() => undefined);
  }
}

/** Thrown if another process holds the lease for longer than the caller waits. Nothing was started. */
class LeaseError extends ServiceError {
  override readonly name = "LeaseError";
  readonly code = "LEASE_HELD";
  readonly disposition = "retry";
}

/** Short, because the next command must wait for the lease of a killed command. */
const COMMAND_TTL_MS = 15_000;
const TRY_EVERY_MS = 250;

/**
 * Runs `fn` with the lease. While another process holds the lease, calls `onWait` once and waits up to `waitMs`.
 * @throws {LeaseError} when the lease is still taken after `waitMs`.
 */
export async function holdPatiently<T>(
  database: Database,
  { name, waitMs, onWait }: { name: string; waitMs: number; onWait: () => void },
  fn: (lease: OwnedLease) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const until = performance.now() + waitMs;
  for (let isFirst = true; ; isFirst = false) {
    signal.throwIfAborted();
    const done = await holdLease(database, { name, ttlMs: COMMAND_TTL_MS }, async (lease) => ({
      result: await fn(lease),
    }));
    if (done !== null) return done.result;
    if (performance.now() >= until)
      throw new LeaseError(
        `another process holds the lease ${name}; try again when that process has finished`,
      );
    if (isFirst) onWait();
    await delay(TRY_EVERY_MS, undefined, { signal });
  }
}

/**
 * Takes the lease, even from a holder that seems to have ended. A wrong guess costs that holder its work in progress
 * and nothing else, because the fence separates the two.
 */
async function take(
  { db }: Database,
  { name, ttlMs }: { name: string; ttlMs: number },
): Promise<number | null> {
  const lease = { name, ttlMs, holder: nameHolder() };
  const fence = await acquireLease(db, lease);
  if (fence !== null) return fence;
  const former = await readHolder(db, name);
  return former !== null && hasEnded(former) ? acquireLease(db, { ...lease, ended: former }) : null;
}

/**
 * Identifies where process ids are comparable: one boot of a kernel, one namespace of it, and a host name to tell
 * copied machines apart.
 */
interface Machine {
  readonly boot: string;
  readonly namespace: string;
  readonly host: string;
}

/** One process of a machine. Process ids are reused; an id together with its start time is not. */
interface Owner extends Machine {
  readonly pid: number;
  /** Start of the process, in ticks since the boot. */
  readonly start: string;
}

/**
 * Returns a name for one holding of a lease. The name identifies the process, so that others on the same machine can
 * see when that process has ended. If the system does not identify processes, the name does not either.
 */
export function nameHolder(): string {
  const machine = readMachine();
  const start = machine === null ? null : readStart(process.pid);
  if (machine === null || start === null) return randomUUID();
  return JSON.stringify({ ...machine, pid: process.pid, start, holding: randomUUID() } satisfies Owner & {
    holding: string;
  });
}

/**
 * Returns whether the holder's process has certainly ended. A process that is stopped or hangs has not ended. Returns
 * false for another machine or container.
 */
export function hasEnded(holder: string): boolean {
  const owner = readOwner(holder);
  const machine = readMachine();
  if (owner === null || machine === null) return false;
  if (owner.boot !== machine.boot || owner.namespace !== machine.namespace || owner.host !== machine.host)
    return false;
  // Asks the kernel, because `/proc` may hide the processes of others.
  if (!isAlive(owner.pid)) return true;
  const start = readStart(owner.pid);
  return start !== null && start !== owner.start;
}

function readOwner(holder: string): Owner | null {
  if (!holder.startsWith("{")) return null;
  try {
    const owner = JSON.parse(holder) as Owner;
    return Number.isSafeInteger(owner.pid) && owner.pid > 0 ? owner : null;
  } catch {
    return null;
  }
}

/** Returns null if there is no such `/proc`. */
function readMachine(): Machine | null {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return { boot, namespace: readlinkSync("/proc/self/ns/pid"), host: hostname() };
  } catch {
    return null;
  }
}

/**
 * Returns null if the start time is hidden. A process that has ended and waits for its parent has no start time
 * either.
 */
function readStart(pid: number): string | null {
  try {
    // The name in parentheses may hold spaces and parentheses. The state follows it, and the start time is the 20th
    // field from there.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? "" : (rest[18] ?? null);
  } catch {
    return null;
  }
}
