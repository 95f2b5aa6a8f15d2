import path from "node:path";
import { readStatement, statementPath, writeStatement } from "#archive/rules/files/day-statement.ts";
import {
  forgetFiles,
  listNamed,
  listRetired,
  listUnchecked,
  listValidFiles,
  markChecked,
  retireExpired,
  sumValidBytes,
} from "#db/archive/archive-files.ts";
import { noteDamage } from "#db/archive/bring-file.ts";
import type { ZoneDay } from "#db/archive/day-source.ts";
import { dropArchivedDay, listHotDays } from "#db/archive/hot-days.ts";
import { removeStaleHours } from "#db/archive/kept-hours.ts";
import type { Queryable } from "#db/client.ts";
import { holdLease } from "#db/postgres/hold-lease.ts";
import { readHourStates } from "#db/proof/coverage-report.ts";
import { removeOld, UNTOUCHED_MS } from "#lib/files.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { readArchivePath } from "#model/archive-layout.ts";
import { type ArchiveStorage, KEPT_FOLDER, type NamedFile, SPILL_FOLDER } from "#model/archive-storage.ts";
import { toDay } from "#model/horizon.ts";
import { keptFrom, type Retention } from "#people/rules/retention.ts";
import type { JobContext } from "../context.ts";
import { ARCHIVE_LEASE, type ArchiveStore, claimStorage, temporaryFolder } from "./archive-store.ts";

/** Longer than any search and any copy of a day, which may still read a file that was replaced. */
const STILL_READ_MS = HOUR_MS;
/** How long a replaced file stays at most: the time above, and until the next run, which is every hour. */
export const REPLACED_STAYS_MS = STILL_READ_MS + HOUR_MS;
/** An unnamed file this old is not being written any more. */
const LEFT_BEHIND_MS = DAY_MS;

/** How long a check counts. Together with the hours of the runs that follow it is less than a day. */
const CHECKED_FOR_MS = 12 * HOUR_MS;
/** A run, which is every hour, checks so much of the archive: the whole within ten hours, even if it is new. */
const SCRUBBED_SHARE = 0.1;
/** A small archive is checked in one run. This many bytes take about four seconds. */
const LEAST_SCRUBBED_BYTES = 2e9;

export interface CleanArchiveDeps extends Pick<JobContext, "database" | "log"> {
  readonly archive: ArchiveStore;
  readonly retention: Retention;
  /** Null: Postgres keeps every day. */
  readonly hotDays: number | null;
}

/**
 * Drops archive days from Postgres once they are old enough, deletes the files past retention and those that were
 * replaced, removes what killed writers left, and checks files, each of them within a day. Does nothing while a day is
 * being written.
 */
export async function cleanArchive(deps: CleanArchiveDeps, now: number): Promise<void> {
  const { database, archive } = deps;
  await holdLease(database, ARCHIVE_LEASE, async () => {
    await claimStorage(database.db, archive.storage);
    await dropHotDays(deps, now);
    const { eventDays, rawDays } = deps.retention;
    const before = (days: number) => toDay(keptFrom(now, days));
    await retireExpired(database.db, { eventsBefore: before(eventDays), recordsBefore: before(rawDays) });
    await deleteRetired(deps, await listRetired(database.db, STILL_READ_MS));
    await sweepStorage(deps, now);
    await scrubFiles(deps);
  });
}

/**
 * Reads the files whose last check no longer counts, so that damage is known before a search needs the file. A damaged file
 * is read again each time there is room, until it is restored.
 */
async function scrubFiles({ database, archive, log }: CleanArchiveDeps): Promise<void> {
  const share = (await sumValidBytes(database.db)) * SCRUBBED_SHARE;
  const most = Math.max(LEAST_SCRUBBED_BYTES, share);
  let bytes = 0;
  for (const file of await listUnchecked(database.db, CHECKED_FOR_MS)) {
    const wrong = await archive.storage.check(file);
    if (wrong === null) await markChecked(database.db, [file.path]);
    else {
      log.error({ path: file.path, wrong }, "archive file damaged");
      await noteDamage(database.db, file, wrong);
    }
    bytes += file.bytes;
    if (bytes > most) return;
  }
}

/** A day is dropped only after every one of its files was read and matched its hash. */
async function dropHotDays(
  { database, archive, log, hotDays }: CleanArchiveDeps,
  now: number,
): Promise<void> {
  if (hotDays === null) return;
  for (const day of await listHotDays(database.db, toDay(now - hotDays * DAY_MS))) {
    const files = await listValidFiles(database.db, { day });
    const damaged: { path: string; wrong: string }[] = [];
    for (const file of files) {
      const wrong = await archive.storage.check(file);
      if (wrong === null) continue;
      damaged.push({ path: file.path, wrong });
      await noteDamage(database.db, file, wrong);
    }
    if (damaged.length > 0) {
      log.error({ day, damaged: damaged.slice(0, 10) }, "day kept in Postgres, archive damaged");
      continue;
    }
    await markChecked(
      database.db,
      files.map((file) => file.path),
    );
    const differing = await dropArchivedDay(database, day);
    // A zone whose day is not in the archive yet is usual; one with other numbers is not.
    const unequal = differing.filter(({ archived }) => archived !== null);
    if (unequal.length > 0) log.error({ day, differing: unequal }, "day kept in Postgres, archive differs");
    else if (differing.length === 0) log.info({ day }, "archive day dropped from Postgres");
  }
}

/** Deletes retired files, removes them from their statements, and forgets them. The caller holds the archive's lease. */
export async function deleteRetired(
  { database, archive: { storage } }: Pick<CleanArchiveDeps, "database" | "archive">,
  files: readonly NamedFile[],
): Promise<void> {
  const retired = new Set(files.map((file) => file.path));
  if (retired.size === 0) return;
  for (const name of retired) await storage.remove(name);
  const days = new Set(
    (await listValidFiles(database.db)).map(({ zoneId, day }) => statementPath(zoneId, day)),
  );
  const places = [...retired].flatMap((name) => readArchivePath(name) ?? []);
  const touched = new Set(places.map(({ zoneId, day }) => statementPath(zoneId, day)));
  for (const name of touched)
    if (days.has(name)) await removeFromStatement(storage, name, retired);
    else await storage.remove(name);
  await forgetFiles(database.db, [...retired]);
}

/** Records are deleted before their events, and `archive verify --offline` looks for every file of a statement. */
async function removeFromStatement(
  storage: ArchiveStorage,
  name: string,
  removed: ReadonlySet<string>,
): Promise<void> {
  const statement = readStatement(await storage.readText(name));
  const files = statement?.files.filter((file) => !removed.has(file.path));
  if (statement !== null && files?.length !== statement.files.length)
    await storage.writeText(name, writeStatement({ ...statement, files: files ?? [] }));
}

/**
 * Removes what killed writers left: temporary files, also of statements, and files that no manifest row names. Such a file
 * may be the only copy of its events if the database was restored from an older backup. So it is removed only if every hour
 * of its day is proven, and the files that the manifest names for that day are there.
 */
async function sweepStorage({ database, archive, log }: CleanArchiveDeps, now: number): Promise<void> {
  const { storage } = archive;
  const before = now - LEFT_BEHIND_MS;
  await removeOld(temporaryFolder(storage.folder), before, [SPILL_FOLDER, KEPT_FOLDER]);
  await removeStaleHours(database.db, storage.folder);
  await removeOld(path.join(temporaryFolder(storage.folder), SPILL_FOLDER), now - UNTOUCHED_MS);
  const listed = await storage.list();
  const old = listed.filter(({ modifiedAt }) => modifiedAt < before).map((file) => file.path);
  for (const name of old) if (name.endsWith(".tmp")) await storage.remove(name);
  const files = old.filter((name) => name.endsWith(".parquet"));
  const named = await listNamed(database.db, files);
  const present = new Set(listed.map((file) => file.path));
  for (const name of files.filter((file) => !named.has(file))) {
    const place = readArchivePath(name);
    if (place !== null && (await isWhole(database.db, place, present))) await storage.remove(name);
    else log.warn({ path: name }, "archive file without manifest row");
  }
}

/** Returns whether the database or the files that its manifest names have every event of a zone's day. */
async function isWhole(
  db: Queryable,
  { zoneId, day }: ZoneDay,
  present: ReadonlySet<string>,
): Promise<boolean> {
  const fromMs = Date.parse(day);
  // The names of folders may be anything.
  if (Number.isNaN(fromMs) || zoneId >= 2 ** 31) return false;
  const hours = await readHourStates(db, [zoneId], { fromMs, toMs: fromMs + DAY_MS });
  const sealed = hours.filter(({ state }) => state === "sealed");
  const files = await listValidFiles(db, { zoneId, day });
  return sealed.length === DAY_MS / HOUR_MS && files.every((file) => present.has(file.path));
}
