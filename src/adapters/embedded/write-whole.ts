import { renameSync, rmSync, writeFileSync } from "node:fs";

/** Writes a file that only this user may read. A full disk leaves no empty or incomplete file for a later start. */
export function writeWhole(file: string, content: string): void {
  const fresh = `${file}.new`;
  try {
    writeFileSync(fresh, content, { mode: 0o600 });
    renameSync(fresh, file);
  } catch (thrown) {
    rmSync(fresh, { force: true });
    throw thrown;
  }
}
