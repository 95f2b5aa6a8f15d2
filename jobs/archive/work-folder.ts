import { mkdir, mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import type { ZoneDay } from "#db/archive/day-source.ts";
import { type ArchiveStorage, TEMPORARY_FOLDER } from "#model/archive-storage.ts";

/** Returns the folder for files that are being written. Everything in it may be deleted when nothing writes. */
export function temporaryFolder(folder: string): string {
  return path.join(folder, TEMPORARY_FOLDER);
}

/** Runs `work` with a new folder for the files of one day, and removes the folder when `work` has ended. */
export async function inWorkFolder<T>(
  storage: ArchiveStorage,
  { zoneId, day }: ZoneDay,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const temporary = temporaryFolder(storage.folder);
  await mkdir(temporary, { recursive: true });
  const folder = await mkdtemp(path.join(temporary, `${zoneId}-${day}-`));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
