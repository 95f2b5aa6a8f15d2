import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import { findProgram } from "./find-program.ts";

/** A separate disk in memory. */
export interface SmallDisk {
  readonly folder: string;
  enlarge(megabytes: number): void;
  /** What is on the disk must fit the smaller one. */
  shrink(megabytes: number): void;
  /** Takes all room that is free now, in the file `fill`. */
  fill(): void;
  remove(): void;
}

/** The service raises no alert about a disk of this size. The disk takes only as much memory as is written. */
const LARGE_MB = 100_000;

/**
 * Returns a folder on a large disk in memory, or on the machine's disk if this user may not mount: making a cluster and
 * committing wait for the machine's disk most of their time. The disk is removed when the test ends.
 */
export function openQuickFolder(): { readonly folder: string; readonly disk: SmallDisk | null } {
  const disk = mountSmallDisk(LARGE_MB);
  const folder = disk?.folder ?? mkdtempSync(path.join(tmpdir(), "longwatch-folder-"));
  // If root runs the tests, Postgres runs as another user, who has to enter the folder: else its files lie elsewhere.
  chmodSync(folder, 0o755);
  onTestFinished(() => (disk === null ? rmSync(folder, { recursive: true, force: true }) : disk.remove()));
  return { folder, disk };
}

/** Mounts a disk of `megabytes`. Returns null if this user or this machine may not mount. */
export function mountSmallDisk(megabytes: number): SmallDisk | null {
  const [mounter, unmounter] = [findProgram("mount"), findProgram("umount")];
  if (mounter === null || unmounter === null) return null;
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-disk-"));
  const mount = (options: string) =>
    execFileSync(mounter, ["-t", "tmpfs", "-o", `${options},mode=0755`, "tmpfs", folder], {
      stdio: "ignore",
    });
  const resize = (other: number) => void mount(`remount,size=${other}m`);
  try {
    mount(`size=${megabytes}m`);
  } catch {
    rmSync(folder, { recursive: true, force: true });
    return null;
  }
  return {
    folder,
    fill() {
      const append = 'dd if=/dev/zero of="$1" oflag=append conv=notrunc bs=1M 2>/dev/null || true';
      execFileSync("sh", ["-c", append, "sh", path.join(folder, "fill")]);
    },
    enlarge: resize,
    shrink: resize,
    remove() {
      // Unmounted lazily, because a server that is just ending may hold a file of the disk.
      execFileSync(unmounter, ["-l", folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
