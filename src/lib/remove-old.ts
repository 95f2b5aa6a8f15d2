import { readdir, rm, stat } from "node:fs/promises";
import path from "node:path";

/** Removes what in a folder was last written before a moment (epoch ms), except `kept`. A folder that is not there is no error. */
export async function removeOld(folder: string, before: number, kept: readonly string[] = []): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (kept.includes(name)) continue;
    const left = path.join(folder, name);
    const found = await stat(left).catch(() => null);
    if (found !== null && found.mtimeMs < before) await rm(left, { recursive: true, force: true });
  }
}
