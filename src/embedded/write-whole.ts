import { renameSync, rmSync, writeFileSync } from "node:fs";

/** Writes a file that only this user may read. On a full disk no empty or half file stays, which a later start would trust. */
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
