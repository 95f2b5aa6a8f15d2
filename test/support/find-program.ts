import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";

/**
 * Returns the first of these programs that is on PATH, or null. Every test that starts a program that a machine may lack has to
 * use it, and says in its name why it is skipped without the program.
 */
export function findProgram(...names: readonly string[]): string | null {
  const folders = (process.env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== "");
  return names.find((name) => folders.some((folder) => isProgram(path.join(folder, name)))) ?? null;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
