import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { listValidFiles } from "../../../db/archive/archive-files.ts";
import { openArchiveFolder } from "../../../jobs/archive/open-folder.ts";
import type { RewriteStep } from "../../../jobs/archive/rewrite-day.ts";
import { type WriteStep, writeDay } from "../../../jobs/archive/write-day.ts";
import { checkFile } from "../../../src/archive/files/check-file.ts";
import type { RestoreStep } from "../../../src/operations/archive/restore-day.ts";
import { verifyArchive } from "../../../src/operations/archive/verify-archive.ts";
import {
  type ArchiveWorld,
  DAY,
  hostileEvents,
  inFileOrder,
  listFiles,
  openArchiveWorld,
  readEventsFile,
  readRecordsFile,
  recordOf,
} from "./archive-world.ts";

/** Processes that are killed in the middle of their work on an archive day. */

const PROGRAM = fileURLToPath(new URL("./archive-child.ts", import.meta.url));
const EVENTS = hostileEvents();
let world: ArchiveWorld;
let lastZone = 500;

beforeAll(async () => {
  world = await openArchiveWorld();
  await openArchiveFolder(world.database.db, world.folder);
});

/** Returns the signal that ended the process; null if it ended by itself. */
async function live(
  work: "archive" | "rewrite" | "restore",
  zoneId: number,
  step = "",
): Promise<string | null> {
  const child = fork(PROGRAM, [world.database.url, world.folder, work, String(zoneId), step], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  if (signal === null && code !== 0) throw new Error(`${work} of zone ${zoneId} ended with ${code}`);
  return signal;
}

const filesOf = (zoneId: number) => listValidFiles(world.database.db, { zoneId, day: DAY });

async function readDay(zoneId: number) {
  const files = await filesOf(zoneId);
  const pathOf = (kind: string) =>
    path.join(world.folder, files.find((file) => file.kind === kind)?.path ?? "");
  return {
    events: await readEventsFile(world, pathOf("events")),
    records: await readRecordsFile(world, pathOf("records")),
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

test.each<WriteStep>(["locked", "copied", "written", "verified", "published", "entered"])(
  "a process that is killed once a day is %s leaves nothing visible, and the next run archives the day",
  async (step) => {
    const zoneId = ++lastZone;
    await world.store(EVENTS, { zoneId });

    expect(await live("archive", zoneId, step)).toBe("SIGKILL");

    expect(await filesOf(zoneId)).toEqual([]);
    expect(await live("archive", zoneId)).toBeNull();
    expect(await readDay(zoneId)).toEqual(WHOLE);
    const named = listFiles(world.folder).filter(
      (name) => name.includes(`zone=${zoneId}/`) && name.endsWith(".parquet"),
    );
    expect(named).toHaveLength(2);
  },
);

test.each<RewriteStep>(["locked", "written", "published", "entered"])(
  "a process that is killed once a rewritten day is %s leaves the old files valid, and the next run rewrites the day",
  async (step) => {
    const zoneId = await archiveDay({ isDropped: true });
    const before = await filesOf(zoneId);

    expect(await live("rewrite", zoneId, step)).toBe("SIGKILL");

    expect(await filesOf(zoneId)).toEqual(before);
    for (const file of before) expect(await checkFile(world.folder, file)).toBeNull();
    expect(await readDay(zoneId)).toEqual(WHOLE);
    expect(await live("rewrite", zoneId)).toBeNull();
    const { events, records } = await readDay(zoneId);
    expect(events).toHaveLength(EVENTS.length);
    expect(new Set(events.map(({ ip }) => ip))).toEqual(new Set([null, "", "erased"]));
    expect(records).toHaveLength(EVENTS.length);
    await expectVerified();
  },
);

test.each<RestoreStep>(["locked", "events copied", "records copied", "retired"])(
  "a process that is killed once a restored day is %s leaves the day archived and nothing in Postgres",
  async (step) => {
    const zoneId = await archiveDay({ isDropped: true });
    const before = await filesOf(zoneId);

    expect(await live("restore", zoneId, step)).toBe("SIGKILL");

    expect(await filesOf(zoneId)).toEqual(before);
    expect([await countRows("waf_events", zoneId), await countRows("raw_blocks", zoneId)]).toEqual([0, 0]);
    expect(await readDay(zoneId)).toEqual(WHOLE);
    expect(await live("restore", zoneId)).toBeNull();
    expect(await filesOf(zoneId)).toEqual([]);
    expect(await countRows("waf_events", zoneId)).toBe(EVENTS.length);
    await writeDay(world, { zoneId, day: DAY });
    expect(await readDay(zoneId)).toEqual(WHOLE);
    await expectVerified();
  },
);

async function expectVerified(): Promise<void> {
  const { signal } = new AbortController();
  const { problems } = await verifyArchive(world.database.db, { ...world, onDay: () => undefined, signal });
  expect(problems).toEqual([]);
}
