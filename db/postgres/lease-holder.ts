import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Process ids mean something only within one: a boot of a kernel, a namespace of it, and a name against copied machines. */
interface Machine {
  readonly boot: string;
  readonly namespace: string;
  readonly host: string;
}

/** Of one process of a machine; ids are used again, an id with its start is not. */
interface Owner extends Machine {
  readonly pid: number;
  /** In ticks since the boot. */
  readonly start: string;
}

/**
 * A name for one holding of a lease that says which process it is, so that others on the same machine can tell when
 * that process has ended. Where the system does not say who is who, the name says nothing.
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
 * Whether the holder's process has ended for sure. One that is stopped or hangs has not, and of another machine or
 * container nothing is known.
 */
export function hasEnded(holder: string): boolean {
  const owner = readOwner(holder);
  const machine = readMachine();
  if (owner === null || machine === null) return false;
  if (owner.boot !== machine.boot || owner.namespace !== machine.namespace || owner.host !== machine.host)
    return false;
  if (!exists(owner.pid)) return true;
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

/** Null where there is no such `/proc`. */
function readMachine(): Machine | null {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return { boot, namespace: readlinkSync("/proc/self/ns/pid"), host: hostname() };
  } catch {
    return null;
  }
}

/** Asked of the kernel: `/proc` may hide the processes of others. */
function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Null where it is hidden; a process that has ended and waits to be noticed by its parent has none. */
function readStart(pid: number): string | null {
  try {
    // The name in parentheses may hold spaces and parentheses itself: state and the 20th field from it come after.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? "" : (rest[18] ?? null);
  } catch {
    return null;
  }
}
