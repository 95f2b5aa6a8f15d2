/** The folder of the embedded Postgres: where it is, and which user owns it. */

import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";

/** Used only if Postgres must run as another user who cannot enter the data folder. This folder survives a reboot. */
const SHARED_ROOT = "/var/lib/longwatch";
const LOCAL = "postgres";
/** The file of the data folder that names a cluster elsewhere. */
const POINTER = "postgres-at";
/** The part of the data folder that Postgres's user owns. Postgres itself keeps it from others. */
export const POSTGRES_FOLDERS = [LOCAL, `${LOCAL}.new`];

interface ClusterPlace {
  /** The cluster's own folder; does not exist before the first start. */
  readonly dataFolder: string;
  /** Postgres's bin, lib and share, readable for the user that runs it. */
  readonly home: string;
}

/**
 * Decides where the cluster and the binaries are. Normally `<dataDir>/postgres` and the installed package. As root,
 * with a data folder or package other users cannot enter, both go below /var/lib/longwatch: `<dataDir>/postgres-at`
 * then names the cluster by a random id, so that a new clone at an old path never adopts an old database, and
 * clusters whose data folder is gone are removed.
 */
export function placeCluster(dataDir: string, home: string, user: PostgresUser | null): ClusterPlace {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const local = path.join(dataDir, LOCAL);
  if (user === null) return { dataFolder: local, home };
  const usableHome = canReach(user, path.join(home, "bin", "postgres")) ? home : copyHome(home);
  const pointer = path.join(dataDir, POINTER);
  if (existsSync(pointer)) return { dataFolder: findCluster(dataDir), home: usableHome };
  // Postgres's user enters the folder, and sees neither its names nor what is in it.
  chownSync(dataDir, -1, user.gid);
  chmodSync(dataDir, 0o710);
  if (existsSync(local) || canReach(user, dataDir)) return { dataFolder: local, home: usableHome };
  removeOrphans();
  const folder = path.join(SHARED_ROOT, "clusters", randomUUID());
  makeShared(path.dirname(folder));
  mkdirSync(folder);
  writeFileSync(path.join(folder, "owner"), pointer);
  chownSync(folder, user.uid, user.gid);
  // Last: a start that is killed before leaves an orphan, and not a cluster that its user cannot enter.
  writeWhole(pointer, path.join(folder, "data"));
  return { dataFolder: path.join(folder, "data"), home: usableHome };
}

/** Whether a service was started in the folder before. Creates nothing. */
export function hasCluster(dataDir: string): boolean {
  return existsSync(path.join(dataDir, LOCAL)) || existsSync(path.join(dataDir, POINTER));
}

/** Returns the folder of the cluster of this data folder, or the folder that a first start would normally create. */
export function findCluster(dataDir: string): string {
  const pointer = path.join(dataDir, POINTER);
  return existsSync(pointer) ? readFileSync(pointer, "utf8").trim() : path.resolve(dataDir, LOCAL);
}

/** Makes a folder below SHARED_ROOT, which Postgres's user can enter. */
function makeShared(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const one of [SHARED_ROOT, folder]) chmodSync(one, 0o711);
}

/** Makes one copy per package version. The complete copy is renamed into place, so that no other start sees half of it. */
function copyHome(home: string): string {
  const manifest = readFileSync(path.join(home, "..", "package.json"), "utf8");
  const { version } = JSON.parse(manifest) as { version: string };
  const copy = path.join(SHARED_ROOT, `postgres-${version}`);
  if (existsSync(copy)) return copy;
  const partial = `${copy}.${randomUUID()}`;
  makeShared(SHARED_ROOT);
  try {
    cpSync(home, partial, { recursive: true, verbatimSymlinks: true });
    const entries = readdirSync(partial, { recursive: true, withFileTypes: true });
    // The files keep their modes. Those of new folders are the process's.
    chmodSync(partial, 0o755);
    for (const entry of entries)
      if (entry.isDirectory()) chmodSync(path.join(entry.parentPath, entry.name), 0o755);
    renameSync(partial, copy);
  } catch (thrown) {
    rmSync(partial, { recursive: true, force: true });
    if (!existsSync(copy)) throw thrown;
  }
  return copy;
}

function removeOrphans(): void {
  const clusters = path.join(SHARED_ROOT, "clusters");
  if (!existsSync(clusters)) return;
  for (const name of readdirSync(clusters)) {
    const folder = path.join(clusters, name);
    const owner = path.join(folder, "owner");
    if (!existsSync(owner)) continue;
    const dataDir = path.dirname(readFileSync(owner, "utf8"));
    if (findCluster(dataDir) !== path.join(folder, "data")) rmSync(folder, { recursive: true, force: true });
  }
}

export interface PostgresUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Returns the user that runs Postgres, which refuses to run as root: null if this process is not root, else an existing
 * unprivileged user (initdb looks up its user, so an unused number does not work).
 * @throws {Error} when the machine knows neither `postgres` nor `nobody`.
 */
export function pickPostgresUser(): PostgresUser | null {
  if (process.getuid?.() !== 0) return null;
  for (const name of ["postgres", "nobody"]) {
    try {
      const id = (flag: string) =>
        Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // No such user: try the next.
    }
  }
  throw new Error(
    "Postgres cannot run as root, and this machine has neither a user postgres nor a user nobody; create one, or run Longwatch as another user",
  );
}

/** Returns whether the user can enter every folder on the path to `folder`. */
function canReach(user: PostgresUser, folder: string): boolean {
  try {
    execFileSync("test", ["-x", folder], { ...user, cwd: "/", stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Writes a file that only its owner may read, this user by default. A full disk leaves no empty or incomplete file for a later start. */
export function writeWhole(file: string, content: string, owner: PostgresUser | null = null): void {
  const temporary = `${file}.new`;
  try {
    writeFileSync(temporary, content, { mode: 0o600 });
    if (owner !== null) chownSync(temporary, owner.uid, owner.gid);
    renameSync(temporary, file);
  } catch (thrown) {
    rmSync(temporary, { force: true });
    throw thrown;
  }
}
