/** Archives the days that are complete. */

import { readFile } from "node:fs/promises";
import { z } from "zod";
import { statementPath } from "#archive/rules/files/day-statement.ts";
import { listNotUploaded, markUploaded } from "#db/archive/archive-files.ts";
import { ArchiveDamagedError, bringFile, locateFile } from "#db/archive/bring-file.ts";
import type { ZoneDay } from "#db/archive/day-source.ts";
import { listDaysToArchive } from "#db/archive/days-to-archive.ts";
import type { Database, Queryable } from "#db/client.ts";
import { holdLease, type OwnedLease } from "#db/postgres/hold-lease.ts";
import { assertFence, FenceLostError } from "#db/postgres/leases.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { decideHours, listOpenZones, lockOpenHours } from "#db/proof/covered-hours.ts";
import { toError } from "#lib/errors.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import { KEPT_MS, toDay } from "#model/horizon.ts";
import { giveUpHour } from "#proof/rules/judge-hour.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { ARCHIVE_LEASE, type ArchiveStore, claimStorage } from "./archive-store.ts";
import { type WriteStep, writeDay } from "./write-day.ts";

/** Time after the platform's retention for what arrives late or is decided late. */
const REST_MS = HOUR_MS;

interface ArchiveDaysDeps extends Pick<JobContext, "database" | "clock"> {
  readonly archive: ArchiveStore;
  /** The configured zones; null if they are not known. Days of other zones are archived without proof that they are complete. */
  readonly zoneIds: readonly number[] | null;
  readonly log: Record<"info" | "warn" | "error", (facts: object, event: string) => unknown>;
  /** How long after its end a day can still change. Null or left out: the platform's 72 hours and one more. */
  readonly settledAfterMs?: number | null;
  readonly onStep?: (step: WriteStep) => unknown;
}

/** Returns from when on a UTC day can no longer change; epoch ms. */
export function settledAt(day: string): number {
  return Date.parse(day) + DAY_MS + KEPT_MS + REST_MS;
}

/** Returns the first UTC day (`yyyy-mm-dd`) that can still change. */
export function firstMovingDay(now: number, settledAfterMs: number | null = null): string {
  return toDay(now - (settledAfterMs ?? KEPT_MS + REST_MS));
}

/**
 * Writes the days that can no longer change into the archive, oldest first, one at a time over all replicas. A day that
 * fails does not keep the others waiting. A killed run has published nothing of its day, and the next run writes that day
 * again.
 */
export function createArchiveDaysJob(deps: ArchiveDaysDeps): AnyJob {
  return defineJob({
    name: "archive-days",
    queue: "derive",
    payload: z.object({}),
    attempts: 1,
    timeoutMs: 50 * 60_000,
    async run(_payload, signal) {
      const days = await archiveDays(deps, {}, signal);
      if (days === null) return LEASE_TAKEN;
      return days === 0 ? "no day can be archived yet" : undefined;
    },
  });
}

interface ArchiveScope {
  /** Null or left out: every zone. */
  readonly zoneId?: number | null;
  /** Called before each day with the number of days before it and of all days. */
  readonly onDay?: (day: ZoneDay, done: number, all: number) => void;
}

/**
 * Archives every day that can be archived now. Returns the number of written days, null if another process is archiving.
 * @throws the first failure, after every day was tried.
 */
export async function archiveDays(
  deps: ArchiveDaysDeps,
  { zoneId = null, onDay }: ArchiveScope,
  signal: AbortSignal,
): Promise<number | null> {
  const { database, archive, clock, zoneIds } = deps;
  const before = firstMovingDay(clock(), deps.settledAfterMs);
  if (zoneIds !== null) {
    const scope = { zoneIds, beforeMs: Date.parse(before), nowMs: clock() };
    const hours = await giveUpHours(database, scope);
    if (hours > 0) deps.log.warn({ hours }, "hours of removed zones given up");
  }
  const days = (await listDaysToArchive(database.db, before, zoneIds)).filter(
    (day) => day.waitingFor === null && (zoneId === null || day.zoneId === zoneId),
  );
  const { storage } = archive;
  const isUploading = storage.isBucket && (await listNotUploaded(database.db)).length > 0;
  if (days.length === 0 && !isUploading) return 0;
  return holdLease(database, ARCHIVE_LEASE, async (lease) => {
    await claimStorage(database.db, storage);
    const ends = AbortSignal.any([signal, lease.lost]);
    if (isUploading) await uploadFiles({ db: database.db, storage, log: deps.log }, ends);
    const failures: Error[] = [];
    let done = 0;
    for (const [index, day] of days.entries()) {
      if (ends.aborted) break;
      onDay?.(day, index, days.length);
      try {
        if (await archiveDay(deps, day, lease, ends)) done++;
      } catch (thrown) {
        if (ends.aborted || thrown instanceof FenceLostError) break;
        const error = toError(thrown);
        deps.log.error({ zoneId: day.zoneId, day: day.day, err: error }, "day not archived");
        failures.push(error);
      }
    }
    if (failures[0] !== undefined) throw failures[0];
    return done;
  });
}

/** Returns whether the day was written. */
async function archiveDay(
  { archive, log, ...deps }: ArchiveDaysDeps,
  { zoneId, day }: ZoneDay,
  lease: OwnedLease,
  signal: AbortSignal,
): Promise<boolean> {
  const startedAt = performance.now();
  const conclude = (tx: Queryable) => assertFence(tx, lease.name, lease.fence);
  const written = await writeDay({ ...deps, ...archive, signal, conclude }, { zoneId, day });
  if (written.outcome === "nothing-to-do") return false;
  if (written.outcome === "counts-differ") {
    const [first] = written.differing;
    log.warn({ zoneId, day, differing: written.differing.length, first }, "day recounted before archiving");
    return false;
  }
  const bytes = written.files.reduce((total, file) => total + file.bytes, 0);
  const ms = Math.round(performance.now() - startedAt);
  log.info({ zoneId, day, events: written.files[0]?.rows, bytes, ms }, "day archived");
  if (written.withoutEvent > 0)
    log.warn({ zoneId, day, records: written.withoutEvent }, "records without event not archived");
  return true;
}

interface UploadFilesDeps {
  readonly db: Queryable;
  readonly storage: ArchiveStorage;
  readonly log: Record<"error" | "info", (facts: object, event: string) => unknown>;
}

/**
 * Puts the files into the bucket that were written before there was one, oldest day first, with their statements. They
 * stay in the folder until they are there. A damaged file does not keep the others waiting.
 */
async function uploadFiles({ db, storage, log }: UploadFilesDeps, signal: AbortSignal): Promise<void> {
  let files = 0;
  for (const file of await listNotUploaded(db)) {
    signal.throwIfAborted();
    try {
      const local = await bringFile(storage, file, signal);
      await storage.put(local, file.path, file, signal);
      const statement = statementPath(file.zoneId, file.day);
      const text = await readFile(locateFile(storage, { path: statement }), "utf8").catch(() => null);
      if (text !== null) await storage.writeText(statement, text);
      await markUploaded(db, file);
      files++;
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof ArchiveDamagedError)) throw thrown;
      log.error({ err: toError(thrown) }, "archive file not uploaded");
    }
  }
  if (files > 0) log.info({ files }, "archive files uploaded");
}

/**
 * Makes gaps of the undecided hours before `beforeMs` of zones that are no longer configured. No job judges these hours
 * any more, and their days could never be archived. Returns the number of hours.
 */
async function giveUpHours(
  database: Database,
  { zoneIds, beforeMs, nowMs }: { zoneIds: readonly number[]; beforeMs: number; nowMs: number },
): Promise<number> {
  const removed = (await listOpenZones(database.db, beforeMs)).filter((zoneId) => !zoneIds.includes(zoneId));
  let hours = 0;
  for (const zoneId of removed)
    hours += await inTransaction(database, async ({ tx }) => {
      const open = await lockOpenHours(tx, zoneId, beforeMs);
      const verdicts = open.map((hour) => ({ startsAt: hour.startsAt, ...giveUpHour(hour) }));
      return decideHours(tx, zoneId, verdicts, nowMs);
    });
  return hours;
}
