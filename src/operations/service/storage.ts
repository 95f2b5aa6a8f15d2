import { z } from "zod";
import type { Queryable } from "#db/client.ts";
import type { RemainingFile } from "#db/privacy/erasures.ts";
import { readDayBytes, readStoredBytes, type StoredBytes } from "#db/service/service-status.ts";
import { formatBytes } from "#lib/disk.ts";
import { many, showTime } from "#lib/format.ts";
import type { ServiceView } from "../service-life.ts";

const bytes = z.number();

export const Storage = z
  .object({
    databaseBytes: bytes,
    recordBytes: bytes.describe("Part of databaseBytes: the records as received."),
    archiveBytes: bytes.describe("The valid files of the archive."),
    dayBytes: bytes.nullable().describe("The largest growth of the last days. Null: not known yet."),
    freeBytes: bytes.nullable().describe("Null if the disk of the database cannot be read from here."),
    daysLeft: z.number().int().nullable().describe("Null if dayBytes or freeBytes is."),
  })
  .meta({ id: "Storage" });
export type Storage = z.infer<typeof Storage>;

/** Returns the sizes of what is stored, and for how many days the disk of the database has room. */
export async function readStorage({
  db,
  now,
  service,
}: {
  readonly db: Queryable;
  readonly now: number;
  readonly service: Pick<ServiceView, "readDisk">;
}): Promise<Storage> {
  const dayBytes = (await readDayBytes(db, now)) || null;
  const freeBytes = service.readDisk()?.freeBytes ?? null;
  const daysLeft = freeBytes === null || dayBytes === null ? null : Math.floor(freeBytes / dayBytes);
  return { ...(await readStoredBytes(db)), dayBytes, freeBytes, daysLeft };
}

/** Returns the sizes as a part of a sentence. */
export function describeSizes({ databaseBytes, recordBytes, archiveBytes }: StoredBytes): string {
  return `database ${formatBytes(databaseBytes)} (records as received ${formatBytes(recordBytes)}), archive ${formatBytes(archiveBytes)}`;
}

export function describeStorage(storage: Storage): string {
  const { dayBytes, freeBytes, daysLeft } = storage;
  const unknown =
    dayBytes === null ? "the growth of a day is not known" : "the database's disk cannot be read from here";
  const left =
    daysLeft === null || dayBytes === null
      ? `days until the disk is full: unknown, ${unknown}`
      : `${many(daysLeft, "day")} until the disk is full: ${formatBytes(freeBytes ?? 0)} free, ${formatBytes(dayBytes)} a day`;
  return `storage: ${describeSizes(storage)}; ${left}`;
}

/** Returns the sentence about a file of the archive that still holds erased events. */
export function describeErasedFile({ path, events, until, problem }: RemainingFile): string {
  const held = events === null ? "An unknown number of erased events" : many(events, "erased event");
  const where = problem === null ? `caches of other processes may hold ${path}` : `${path} was not deleted`;
  const why = problem === null ? "" : ` (${problem})`;
  return `${held} until ${showTime(until)} UTC: ${where}${why}`;
}
