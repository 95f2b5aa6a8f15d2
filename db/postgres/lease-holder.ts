import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { isAlive } from "#lib/alive.ts";

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
