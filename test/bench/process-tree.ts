import { readFileSync } from "node:fs";
import { listProcesses } from "../support/list-processes.ts";

/** Ticks of /proc/<pid>/stat per second on Linux. */
const TICKS = 100;

/** Returns this process and its descendants, or those of another process. */
export function listTree(root = process.pid): number[] {
  const all = listProcesses();
  const tree = [root];
  for (const pid of tree) tree.push(...all.filter(({ parent }) => parent === pid).map((child) => child.pid));
  return tree;
}

/** Returns the CPU ms that the processes and their ended children have taken. Linux only; else 0. */
export function readCpuMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const stat = read(`/proc/${pid}/stat`);
    // User and system time, then those of ended children. The name in brackets may contain anything.
    const times = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 15);
    return sum + times.reduce((all, ticks) => all + Number(ticks) * (1_000 / TICKS), 0);
  }, 0);
}

/** Returns the memory of the processes, in bytes, a page that several share counted once. Linux only; else 0. */
export function readMemory(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const [, kilobytes = "0"] = /^Pss:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/smaps_rollup`)) ?? [];
    return sum + Number(kilobytes) * 1_024;
  }, 0);
}

/** '' for a process that has ended. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
