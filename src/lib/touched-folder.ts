import { mkdir, mkdtemp, rm, utimes } from "node:fs/promises";
import path from "node:path";
import { HOUR_MS, MINUTE_MS } from "./units.ts";

const TOUCH_EVERY_MS = 10 * MINUTE_MS;
/** A touched folder that was last written before this time has no owner any more. */
export const UNTOUCHED_MS = HOUR_MS;

export interface TouchedFolder {
  readonly folder: string;
  remove(): Promise<void>;
}

/**
 * Creates a folder of this process for temporary data. The process writes the folder's time again and again, so that
 * other processes, also of other containers, can see when it was killed.
 */
export async function makeTouchedFolder(parent: string, prefix: string): Promise<TouchedFolder> {
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(path.join(parent, prefix));
  const timer = setInterval(() => {
    const now = new Date();
    utimes(folder, now, now).catch(() => undefined);
  }, TOUCH_EVERY_MS).unref();
  return {
    folder,
    async remove() {
      clearInterval(timer);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
