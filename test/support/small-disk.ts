import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
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
