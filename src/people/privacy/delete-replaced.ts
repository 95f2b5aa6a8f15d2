import { listRetired, type ManifestRow } from "#db/archive/archive-files.ts";
import { bringFile } from "#db/archive/bring-file.ts";
import { countFileAddresses } from "#db/archive/rewrite-files.ts";
import type { RemainingFile } from "#db/people/erasures.ts";
import { holdPatiently } from "#db/postgres/hold-lease.ts";
import { ARCHIVE_LEASE, type ArchiveStore, claimStorage } from "#jobs/archive/archive-store.ts";
import { deleteRetired, REPLACED_STAYS_MS } from "#jobs/archive/clean-archive.ts";
import type { JobContext } from "#jobs/context.ts";
import { messageOf, toError } from "#lib/errors.ts";
import { FORGET_EVERY_MS, YOUNG_FILE_MS } from "#model/archive-storage.ts";
import { toDay } from "#model/horizon.ts";

/** How long to wait for a process that copies, writes or cleans the archive. */
const WAIT_MS = 30_000;
/** How long the cache of another process keeps a file that was deleted, at most. */
const CACHED_MS = YOUNG_FILE_MS + FORGET_EVERY_MS;

interface DeleteReplacedDeps extends Pick<JobContext, "database" | "clock"> {
  readonly archive: ArchiveStore;
  /** Default: half a minute. */
  readonly waitMs?: number | undefined;
}

interface Replaced {
  /** Null: every zone. */
  readonly zoneId: number | null;
  /** Files of days up to this time are deleted; epoch ms. */
  readonly untilAt: number;
  readonly covers: (ip: string) => boolean;
}

/**
 * Deletes the files that were replaced, in which erased events still stand. Searches go on with the new files. Returns the
 * files that remain: those that could not be deleted, and copies in the caches of other processes.
 */
export async function deleteReplaced(
  { database, archive, clock, waitMs = WAIT_MS }: DeleteReplacedDeps,
  { zoneId, untilAt, covers }: Replaced,
  signal: AbortSignal,
): Promise<RemainingFile[]> {
  const { storage } = archive;
  const retired = await listRetired(database.db, 0, { zoneId, through: toDay(untilAt) });
  if (retired.length === 0) return [];
  const count = () => countCovered(archive, retired, { untilAt, covers }, signal);
  // Before the deletion, after which only the caches of other processes have the files.
  const counted = storage.isBucket ? await count() : null;
  const lease = { name: ARCHIVE_LEASE.name, waitMs, onWait: () => undefined };
  const problem = await holdPatiently(
    database,
    lease,
    async () => {
      await claimStorage(database.db, storage);
      await deleteRetired({ database, archive }, retired);
      return null;
    },
    signal,
  ).catch((thrown: unknown) => {
    signal.throwIfAborted();
    return messageOf(toError(thrown));
  });
  if (problem === null && counted === null) return [];
  const until = clock() + (counted === null ? 0 : CACHED_MS) + (problem === null ? 0 : REPLACED_STAYS_MS);
  return (counted ?? (await count())).map((file) => ({ ...file, until, problem }));
}

/** Returns in which files how many events are covered; null for a file that cannot be read. Files without any are left out. */
async function countCovered(
  { storage, duckdb }: ArchiveStore,
  files: readonly ManifestRow[],
  { untilAt, covers }: Omit<Replaced, "zoneId">,
  signal: AbortSignal,
): Promise<{ path: string; events: number | null }[]> {
  const counts = new Map<string, number | null>();
  const placeOf = ({ zoneId, day }: ManifestRow) => `${zoneId} ${day}`;
  const found: { path: string; events: number | null }[] = [];
  // Events come before records in the list. A record is in the row of its event.
  for (const file of files) {
    const place = placeOf(file);
    if (file.kind === "events") {
      const events = await bringFile(storage, file, signal)
        .then((local) => countFileAddresses(duckdb, local, untilAt))
        .then((rows) => rows.reduce((sum, { ip, events }) => sum + (covers(ip) ? events : 0), 0))
        .catch(() => null);
      signal.throwIfAborted();
      const before = counts.get(place) ?? 0;
      counts.set(place, events === null ? null : Math.max(events, before));
      found.push({ path: file.path, events });
    } else found.push({ path: file.path, events: counts.get(place) ?? null });
  }
  return found.filter(({ events }) => events !== 0);
}
