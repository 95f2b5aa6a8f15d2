import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

export interface ListedProcess {
  readonly pid: number;
  readonly parent: number;
  /** The command with its arguments, separated by blanks. */
  readonly command: string;
}

/** Returns the machine's processes: from /proc on Linux, where small images have no `ps`, elsewhere from `ps`. */
export function listProcesses(): ListedProcess[] {
  if (process.platform === "linux") {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap(readProcess);
  }
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [, pid, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return command === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}

/** Returns the process, or nothing if it ends while it is read. */
function readProcess(pid: string): ListedProcess[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    // The name in brackets may contain anything. State and parent follow the last bracket.
    const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return [{ pid: Number(pid), parent: Number(parent), command }];
  } catch {
    return [];
  }
}
