import { accessSync, constants } from "node:fs";
import path from "node:path";

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
