import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";

/**
 * Returns the first of these programs that is on PATH, or null. Every test of a program that a machine may lack has
 * to use it: `.ci/run` runs every test that imports this file a second time, on a PATH without any of these programs.
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
