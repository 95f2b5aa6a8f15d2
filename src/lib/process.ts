/** Processes: this one's command and person, its parent, its children, and how its parts stop. */
import { accessSync, constants } from "node:fs";
import { userInfo } from "node:os";
import path from "node:path";
import { toError } from "./errors.ts";
import { within } from "./waiting.ts";

/** Returns whether a process has this id, of whatever user. Process ids are reused: it may be another one than was meant. */
export function isAlive(pid: number): boolean {
  try {
    // Signal 0 only asks.
    return process.kill(pid, 0);
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The variables that a process needs to run. None has a secret. */
const PASSED = ["PATH", "LD_LIBRARY_PATH", "SystemRoot", "TEMP", "TMP", "TMPDIR", "NODE_COMPILE_CACHE"];

/** Returns the environment of a child process that needs no setting of the service. */
export function childEnvironment(): Record<string, string> {
  return Object.fromEntries(PASSED.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

/**
 * Stops a child process with an IPC channel when its parent sends "stop" or ends, even by kill -9. Does nothing
 * without a parent, and keeps no process running. `stop` may be called once more by a signal of the process's own,
 * because Ctrl-C reaches parent and child alike. `reload` is called when the parent sends "reload". A message that
 * came before this call is not lost.
 */
export function followParent(stop: (reason: string) => void, reload: () => void = () => undefined): void {
  if (process.channel === undefined) return;
  process.on("message", (message) => {
    if (message === "stop") stop("the starter was asked to stop");
    if (message === "reload") reload();
  });
  process.once("disconnect", () => stop("the starter is gone"));
  process.channel?.unref();
}

/** The program's name in the messages and help texts of the code. `asCalled` replaces it if another one is right. */
const IN_CHECKOUT = "npm run -s longwatch --";
const ON_PATH = "longwatch";

/**
 * Returns the command that starts this program here: `longwatch` if such a program is on the PATH, as in the image
 * and under systemd, and no npm script has started this process; else the npm script of the checkout.
 */
export function findOwnCommand({
  npm_lifecycle_event: script,
  PATH = "",
}: Record<string, string | undefined>): string {
  if (script !== undefined) return IN_CHECKOUT;
  return PATH.split(path.delimiter).some((folder) => isProgram(folder)) ? ON_PATH : IN_CHECKOUT;
}

function isProgram(folder: string): boolean {
  if (folder === "") return false;
  try {
    accessSync(path.join(folder, ON_PATH), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export const OWN_COMMAND = findOwnCommand(process.env);

/** Returns whether the service was installed as a program rather than checked out. */
export function isInstalled(command = OWN_COMMAND): boolean {
  return command === ON_PATH;
}

/** Returns the command line that a person types here: `longwatch status`, or `npm run -s longwatch -- status`. */
export function ownCommand(line: string, command = OWN_COMMAND): string {
  return `${command} ${line}`;
}

/** Returns how to start the service here. An installed service is not started by npm, which would add an emulator. */
export function startHint(command = OWN_COMMAND): string {
  return isInstalled(command) ? "start the service (docs/deploy.md)" : "run npm start";
}

/** Replaces the checkout's commands in a text by those that a person types here. */
export function asCalled(text: string, command = OWN_COMMAND): string {
  return text
    .replaceAll(IN_CHECKOUT, command)
    .replaceAll("run npm start", startHint(command))
    .replaceAll(/\bnpm start\b/g, isInstalled(command) ? `${ON_PATH} start` : "npm start");
}

/** Returns the name of the operating system's user, for the audit trail. */
export function whoRuns(): string {
  try {
    return userInfo().username;
  } catch {
    // The user of a container may have no name.
    return "unknown";
  }
}

type Teardown = () => unknown;

/** The time that a part needs to stop. A database needs longer. */
const PART_MS = 250;

/**
 * Returns a stack that stops parts in reverse order of construction. A part registers its teardown on the line after
 * it was built, so a start that fails half-way unwinds like a normal stop. `stop` is idempotent, and one part's
 * failure does not keep the others running. `onStopped` gets the duration of each part's stop. All parts together take at
 * most `budgetMs`. A part may take what the parts after it do not need, at least half of the time that is left. If it has not
 * stopped by then, it is reported and left behind.
 */
export function createStopStack(
  onError: (name: string, error: Error) => void,
  onStopped: (name: string, ms: number) => void = () => undefined,
  budgetMs = 2_147_483_647,
) {
  const entries: { name: string; teardown: Teardown }[] = [];
  let stopping: Promise<void> | undefined;

  const unwind = async () => {
    const deadline = performance.now() + budgetMs;
    for (let entry = entries.pop(); entry !== undefined; entry = entries.pop()) {
      const since = performance.now();
      const leftMs = deadline - since;
      const shareMs = Math.max(1, Math.round(Math.max(leftMs / 2, leftMs - entries.length * PART_MS)));
      try {
        const stopped = Promise.resolve().then(entry.teardown);
        if ((await within(stopped, shareMs)) === "late") throw new Error(`not stopped in ${shareMs} ms`);
        onStopped(entry.name, Math.round(performance.now() - since));
      } catch (thrown) {
        onError(entry.name, toError(thrown));
      }
    }
  };

  return {
    defer(name: string, teardown: Teardown): void {
      entries.push({ name, teardown });
    },
    stop(): Promise<void> {
      stopping ??= unwind();
      return stopping;
    },
  };
}

export type StopStack = ReturnType<typeof createStopStack>;
