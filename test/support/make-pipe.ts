import { execFileSync } from "node:child_process";

/** Makes a pipe: whatever opens it waits until somebody opens its other end. */
export function makePipe(path: string): void {
  execFileSync("mkfifo", [path]);
}
