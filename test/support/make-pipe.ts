import { execFileSync } from "node:child_process";
import { findProgram } from "./find-program.ts";

/** Makes a pipe: whatever opens it waits until somebody opens its other end. */
export function makePipe(path: string): void {
  const mkfifo = findProgram("mkfifo");
  if (mkfifo === null) throw new Error("mkfifo is missing; install coreutils");
  execFileSync(mkfifo, [path]);
}
