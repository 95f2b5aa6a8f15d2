import { accessSync, constants } from "node:fs";
import path from "node:path";

/** The container image and the systemd guide put a program of this name on PATH; a checkout runs it through npm. */
const PROGRAM = "longwatch";

/** Returns how a person types this command here: `longwatch status`, or `npm run -s longwatch -- status`. */
export function ownCommand(line: string, env: NodeJS.ProcessEnv = process.env): string {
  return `${isInstalled(env) ? PROGRAM : `npm run -s ${PROGRAM} --`} ${line}`;
}

/** Returns what to do to start the service here. */
export function startHint(env: NodeJS.ProcessEnv = process.env): string {
  return isInstalled(env) ? "start the service (docs/deploy.md)" : "run npm start";
}

/** Returns a text whose commands are written for npm, with the commands as a person types them here. */
export function asTypedHere(text: string, env: NodeJS.ProcessEnv = process.env): string {
  return isInstalled(env) ? text.replaceAll(`npm run -s ${PROGRAM} -- `, `${PROGRAM} `) : text;
}

/** Whether the service was installed with the program, and not only checked out. */
export function isInstalled({ PATH = "" }: NodeJS.ProcessEnv = process.env): boolean {
  return PATH.split(path.delimiter).some((folder) => {
    try {
      accessSync(path.join(folder, PROGRAM), constants.X_OK);
      return folder !== "";
    } catch {
      return false;
    }
  });
}
