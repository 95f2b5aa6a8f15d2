import { chownSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { PostgresUser } from "./postgres-user.ts";

/** Writes a file that only its owner may read, this user by default. A full disk leaves no empty or incomplete file for a later start. */
export function writeWhole(file: string, content: string, owner: PostgresUser | null = null): void {
  const fresh = `${file}.new`;
  try {
    writeFileSync(fresh, content, { mode: 0o600 });
    if (owner !== null) chownSync(fresh, owner.uid, owner.gid);
    renameSync(fresh, file);
  } catch (thrown) {
    rmSync(fresh, { force: true });
    throw thrown;
  }
}
