import { fork } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import type { RestoreStep } from "#archive/operations/restore-day.ts";
import { verifyArchive } from "#archive/operations/verify-archive.ts";
import { listValidFiles } from "#db/archive/archive-files.ts";
import { bringFile } from "#db/archive/bring-file.ts";
import { claimStorage } from "#jobs/archive/archive-store.ts";
import type { RewriteStep } from "#jobs/archive/rewrite-day.ts";
import { type WriteStep, writeDay } from "#jobs/archive/write-day.ts";
import { shareS3Server } from "../../support/s3-server.ts";
import { sample } from "../../support/sample.ts";
import { type ArchiveWork, doArchiveWork } from "./archive-work.ts";
import {
  type ArchiveWorld,
  DAY,
  hostileEvents,
  inFileOrder,
  openArchiveWorld,
  readEventsFile,
  readRecordsFile,
  recordOf,
} from "./archive-world.ts";

/** Processes that are killed in the middle of their work on an archive day. */

const PROGRAM = fileURLToPath(new URL("./archive-child.ts", import.meta.url));
const EVENTS = hostileEvents();
const server = await shareS3Server();
const worlds: Readonly<Record<"folder" | "bucket", ArchiveWorld>> = {
  folder: await openArchiveWorld(),
  bucket: await openArchiveWorld(undefined, server.bucket("kept/logs")),
};
/** The one of the running test. */
let world: ArchiveWorld;
let lastZone = 500;

beforeAll(async () => {
  for (const { database, storage } of Object.values(worlds)) await claimStorage(database.db, storage);
});
beforeEach(() => {
  world = worlds.folder;
});

/** Does the work in another process, which is killed at the step. */
async function dieAt(step: string, work: ArchiveWork, zoneId: number): Promise<void> {
  const child = fork(PROGRAM, [world.database.url, world.folder, work, String(zoneId), step], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...process.env, ...(world.storage.isBucket ? server.environment : {}) },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  expect(await once(child, "close")).toEqual([null, "SIGKILL"]);
}

/** Does the work in this process, as the next run after the killed one. */
const workAgain = (work: ArchiveWork, zoneId: number) =>
  doArchiveWork({ database: world.database, archive: world }, work, zoneId);

const filesOf = (zoneId: number) => listValidFiles(world.database.db, { zoneId, day: DAY });

async function readDay(zoneId: number) {
  const files = await filesOf(zoneId);
  const bring = async (kind: string) => {
    const file = files.find((one) => one.kind === kind);
    if (file === undefined) throw new Error(`no ${kind} file`);
    // What a bucket has counts, and not the cache.
    if (world.storage.isBucket) rmSync(path.join(world.folder, file.path), { force: true });
    return bringFile(world.storage, file);
  };
  return {
    events: await readEventsFile(world, await bring("events")),
    records: await readRecordsFile(world, await bring("records")),
  };
}

const WHOLE = { events: inFileOrder(EVENTS), records: inFileOrder(EVENTS).map(recordOf) };

async function archiveDay({ isDropped }: { isDropped: boolean }): Promise<number> {
  const zoneId = ++lastZone;
  await world.store(EVENTS, { zoneId });
  await writeDay(world, { zoneId, day: DAY });
  if (isDropped)
    for (const table of ["waf_events", "raw_blocks"])
      await world.database.pool.query(`delete from ${table} where zone_id = $1`, [zoneId]);
  return zoneId;
}

const countRows = async (table: string, zoneId: number) => {
  const { rows } = await world.database.pool.query(
    `select count(*)::integer as count from ${table} where zone_id = $1`,
    [zoneId],
  );
  return rows[0].count as number;
};

/**
 * Until files are published, a killed process has left nothing but what it wrote beside them. Once they are entered, it has left them
 * as well, in a folder as in a bucket.
 */
const isEarly = ([step, place]: readonly [string, string]) =>
  /locked|copied|written|verified/.test(step) || (step === "published" && place === "folder");

const WRITES: [WriteStep, "folder" | "bucket"][] = [
  ["locked", "folder"],
  ["copied", "folder"],
  ["written", "folder"],
  ["verified", "folder"],
  ["published", "folder"],
  ["entered", "folder"],
  ["published", "bucket"],
];
test.each(sample(WRITES, isEarly))(
  "a process that is killed once a day is %s in a %s leaves nothing visible, and the next run archives the day",
  async (step, place) => {
    world = worlds[place];
    const zoneId = ++lastZone;
    await world.store(EVENTS, { zoneId });

    await dieAt(step, "archive", zoneId);

    expect(await filesOf(zoneId)).toEqual([]);
    await workAgain("archive", zoneId);
    expect(await readDay(zoneId)).toEqual(WHOLE);
    const named = (await world.storage.list()).filter(
      ({ path }) => path.includes(`zone=${zoneId}/`) && path.endsWith(".parquet"),
    );
    expect(named).toHaveLength(2);
  },
);

const REWRITES: [RewriteStep, "folder" | "bucket"][] = [
  ["locked", "folder"],
  ["written", "folder"],
  ["published", "folder"],
  ["entered", "folder"],
  ["published", "bucket"],
];
test.each(sample(REWRITES, isEarly))(
  "a process that is killed once a rewritten day is %s in a %s leaves the old files valid, and the next run rewrites the day",
  async (step, place) => {
    world = worlds[place];
    const zoneId = await archiveDay({ isDropped: true });
    const before = await filesOf(zoneId);

    await dieAt(step, "rewrite", zoneId);

    expect(await filesOf(zoneId)).toEqual(before);
    for (const file of before) expect(await world.storage.check(file)).toBeNull();
    expect(await readDay(zoneId)).toEqual(WHOLE);
    await workAgain("rewrite", zoneId);
    const { events, records } = await readDay(zoneId);
    expect(events).toHaveLength(EVENTS.length);
    expect(new Set(events.map(({ ip }) => ip))).toEqual(new Set([null, "", "erased"]));
    expect(records).toHaveLength(EVENTS.length);
    await expectVerified();
  },
);

const RESTORES: [RestoreStep, "folder" | "bucket"][] = [
  ["locked", "folder"],
  ["events copied", "folder"],
  ["records copied", "folder"],
  ["retired", "folder"],
  ["retired", "bucket"],
];
test.each(sample(RESTORES, isEarly))(
  "a process that is killed once a restored day is %s from a %s leaves the day archived and nothing in Postgres",
  async (step, place) => {
    world = worlds[place];
    const zoneId = await archiveDay({ isDropped: true });
    const before = await filesOf(zoneId);

    await dieAt(step, "restore", zoneId);

    expect(await filesOf(zoneId)).toEqual(before);
    expect([await countRows("waf_events", zoneId), await countRows("raw_blocks", zoneId)]).toEqual([0, 0]);
    expect(await readDay(zoneId)).toEqual(WHOLE);
    await workAgain("restore", zoneId);
    expect(await filesOf(zoneId)).toEqual([]);
    expect(await countRows("waf_events", zoneId)).toBe(EVENTS.length);
    await writeDay(world, { zoneId, day: DAY });
    expect(await readDay(zoneId)).toEqual(WHOLE);
    await expectVerified();
  },
);

async function expectVerified(): Promise<void> {
  const { signal } = new AbortController();
  const verifying = { ...world, onProgress: () => undefined, signal };
  const { problems } = await verifyArchive(world.database.db, verifying);
  expect(problems).toEqual([]);
}
