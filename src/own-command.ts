import { accessSync, constants } from "node:fs";
import path from "node:path";

/** How messages and help texts in the code name the program; `asCalled` replaces it where something else is right. */
const IN_CHECKOUT = "npm run -s longwatch --";
const ON_PATH = "longwatch";

/**
 * How a person calls the command line where this process runs: `longwatch` if such a program is on the PATH, as in the
 * image, and no npm script has started this process; else the npm script of the checkout.
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

/** The text with the program called as a person calls it here. */
export function asCalled(text: string, command = OWN_COMMAND): string {
  const isOnPath = command === ON_PATH;
  return text
    .replaceAll(IN_CHECKOUT, command)
    .replaceAll(/\bnpm start\b/g, isOnPath ? `${ON_PATH} start` : "npm start");
}
