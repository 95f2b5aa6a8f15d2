import { type ChildProcess, type ForkOptions, fork } from "node:child_process";
import path from "node:path";

/** A program of this folder in a process of its own, which ends with this one. */
export function startChild(program: string, args: readonly string[] = [], options: ForkOptions = {}) {
  return fork(path.join(import.meta.dirname, program), [...args], { execArgv: [], ...options });
}

/** The child's next message. Rejects when it ends first. */
export function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => {
      child.off("message", onMessage);
      reject(new Error(`${path.basename(child.spawnargs.at(-1) ?? "child")} ended with ${code}`));
    };
    const onMessage = (message: unknown) => {
      child.off("exit", onExit);
      resolve(message as T);
    };
    child.once("message", onMessage).once("exit", onExit);
  });
}

export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  if (child.connected) child.disconnect();
  else child.kill();
  await exited;
}
