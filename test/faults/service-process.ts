import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { quickEnvironment } from "../support/quick-environment.ts";

const MAIN = path.join(import.meta.dirname, "..", "..", "src", "main.ts");

export interface ServiceProcess {
  readonly child: ChildProcess;
  /** Exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>;
  /** Returns the end of the output on both streams. */
  printed(): string;
}

/**
 * Starts `longwatch start`, or another command, in a process of its own, with exactly these variables; no emulator,
 * no Postgres of its own.
 */
export function startServiceProcess(env: Record<string, string>, command = "start"): ServiceProcess {
  const child = spawn(process.execPath, [MAIN, command], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...quickEnvironment(), LONGWATCH_PORT: "0", ...env },
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed = (printed + text).slice(-100_000);
    });
  }
  const exited = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | string);
  return { child, exited, printed: () => printed };
}
