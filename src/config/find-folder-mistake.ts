import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";

/**
 * Returns why files cannot be written in a folder, or null. A folder that does not exist yet only needs a parent that
 * is a folder: it may be made elsewhere, for example in a container.
 */
export function findFolderMistake(folder: string): string | null {
  try {
    if (!statSync(folder).isDirectory()) return `must be a folder, but ${folder} is a file`;
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    const parent = path.dirname(folder);
    if (code === "ENOTDIR") return findFolderMistake(parent);
    if (code === "ENOENT") return parent === folder ? null : findFileAbove(parent);
    return `must be a folder that Longwatch can read (${code})`;
  }
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return null;
  } catch {
    return `must be a folder that Longwatch may write, but ${folder} is not; change its owner, or choose another folder`;
  }
}

function findFileAbove(folder: string): string | null {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found !== undefined) return found.isDirectory() ? null : `must be a folder, but ${folder} is a file`;
  const parent = path.dirname(folder);
  return parent === folder ? null : findFileAbove(parent);
}
