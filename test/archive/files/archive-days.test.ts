import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { holdDays } from "#db/archive/day-source.ts";
import { listDaysToArchive } from "#db/archive/days-to-archive.ts";
import { createDuckdb } from "#db/duckdb/duckdb.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { createArchiveDaysJob } from "#jobs/archive/archive-days.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { silent } from "../../ingest/ingest-support.ts";
import { mountSmallDisk } from "../../support/small-disk.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { DAY, DAY_START, listFiles, NOW, openArchiveWorld } from "./archive-world.ts";

const DAY_MS = 86_400_000;
const world = await openArchiveWorld();

const eventsOn = (day: number, count = 3) =>
  Array.from({ length: count }, (_, index) =>
    makeEvent({ occurredAt: DAY_START + day * DAY_MS + index * 3_600_000, logId: `d${day}-${index}` }),
  );

const run = (over: Partial<Parameters<typeof createArchiveDaysJob>[0]> = {}) =>
  createArchiveDaysJob({
    database: world.database,
    archive: world,
    clock: () => NOW,
    zoneIds: null,
    log: silent,
    ...over,
  }).run({} as never, new AbortController().signal);

const archived = async (zoneId: number) => {
  const { rows } = await world.database.pool.query<{ day: string }>(
    "select day::text from archive_files where zone_id = $1 and kind = 'events' and retired_at is null order by day",
    [zoneId],
  );
  return rows.map(({ day }) => day);
};

test("archive-days writes the days that can no longer change and leaves those that can", async () => {
  await world.store([...eventsOn(-1), ...eventsOn(0), ...eventsOn(1)], { zoneId: 201 });

  await run();

  // The day after DAY ended less than 72 hours before NOW.
  expect(await archived(201)).toEqual(["2026-11-17", DAY]);
});

test("the archive days of a page are found whatever the time zone of the process", async () => {
  await world.store(eventsOn(0), { zoneId: 207 });
  await run();
  vi.stubEnv("TZ", "Asia/Tokyo");
  onTestFinished(() => void vi.unstubAllEnvs());
  const at = DAY_START + 20 * 3_600_000;
  expect(new Date(at).getDate()).toBe(new Date(at).getUTCDate() + 1);
  const found = await inTransaction(world.database, ({ tx, client }) =>
    holdDays(tx, client, { zoneId: 207, firstAt: at, lastAt: at }),
  );
  expect([...found]).toEqual([DAY]);
});

test("a day waits for open hours, held events and records, stale minutes and erasures, and is archived once they are gone", async () => {
  const { pool, db } = world.database;
  await world.store(eventsOn(0), { zoneId: 202 });
  const waitingFor = async () =>
    (await listDaysToArchive(db, "2026-11-19", null)).find(({ zoneId, day }) => zoneId === 202 && day === DAY)
      ?.waitingFor;
  const hour = `${DAY}T05:00:00Z`;

  await pool.query(
    "update coverage_windows set state = 'open', sealed_at = null, evidence = null where zone_id = 202 and starts_at = $1",
    [hour],
  );
  expect(await waitingFor()).toBe("open hours");
  await pool.query("delete from coverage_windows where zone_id = 202 and starts_at = $1", [hour]);
  expect(await waitingFor()).toBe("missing hours");
  await pool.query(
    "insert into coverage_windows (zone_id, starts_at, state, gap_reason) values (202, $1, 'gap', 'x')",
    [hour],
  );
  await pool.query(
    "insert into quarantined_entries (zone_id, day, route, reason, raw, is_held) values (202, $1, 'list', 'x', 'x', true)",
    [DAY],
  );
  expect(await waitingFor()).toBe("held entries");
  await pool.query("delete from quarantined_entries");
  await pool.query("insert into dirty_buckets (zone_id, rule_id, minute) values (202, 'x', $1)", [hour]);
  expect(await waitingFor()).toBe("stale minutes");
  await run();
  expect(await archived(202)).toEqual([]);
  await pool.query("delete from dirty_buckets");
  expect(await waitingFor()).toBeNull();
  await run();
  expect(await archived(202)).toEqual([DAY]);
});

test("days of a removed zone are archived, and its undecided hours become gaps; a configured zone's day waits", async () => {
  const { pool } = world.database;
  for (const zoneId of [205, 206]) {
    await world.store(eventsOn(0), { zoneId, isSealed: false });
    await pool.query(
      "insert into coverage_windows (zone_id, starts_at, state) values ($1, $2, 'open') on conflict (zone_id, starts_at) do update set state = 'open', sealed_at = null",
      [zoneId, `${DAY}T01:00:00Z`],
    );
  }

  await run({ zoneIds: [206] });

  expect([await archived(205), await archived(206)]).toEqual([[DAY], []]);
  const { rows } = await pool.query(
    "select zone_id, state, gap_reason, evidence -> 'stored' ->> 'count' as stored from coverage_windows where zone_id in (205, 206) and starts_at = $1 order by 1",
    [`${DAY}T01:00:00Z`],
  );
  expect(rows).toEqual([
    {
      zone_id: 205,
      state: "gap",
      gap_reason: expect.stringContaining("removed"),
      stored: expect.any(String),
    },
    { zone_id: 206, state: "open", gap_reason: null, stored: null },
  ]);
});

test("two runs at once archive a day once", async () => {
  await world.store(eventsOn(0), { zoneId: 203 });

  await Promise.all([run(), run()]);
  await run();

  expect(await archived(203)).toEqual([DAY]);
});

test("archive-days refuses the folder of another database, and one that lacks the manifest's files", async () => {
  await world.store(eventsOn(-1), { zoneId: 204 });
  await run();
  await world.store(eventsOn(0), { zoneId: 204 });
  const foreign = makeTemporaryFolder("foreign");
  writeFileSync(path.join(foreign, "archive.json"), JSON.stringify({ format: 1, id: "0".repeat(32) }));

  await expect(run({ archive: { ...world, storage: createFolderStorage(foreign) } })).rejects.toThrow(
    "belongs to another Longwatch database",
  );
  const empty = createFolderStorage(makeTemporaryFolder("empty"));
  await expect(run({ archive: { ...world, storage: empty } })).rejects.toThrow(
    /is empty, but the manifest names \d+ files/,
  );
  expect(await archived(204)).toEqual(["2026-11-17"]);
});

const disk = mountSmallDisk(3);

test.skipIf(disk === null)(
  "a full disk leaves the day in Postgres and nothing half written, and the day is archived once there is room",
  async () => {
    if (disk === null) return;
    onTestFinished(() => disk.remove());
    const full = await openArchiveWorld();
    const folder = path.join(disk.folder, "archive");
    const duckdb = createDuckdb({
      folders: [folder],
      spillInto: path.join(folder, "tmp"),
      memoryBytes: 128e6,
      residentBytes: 400e6,
    });
    onTestFinished(() => duckdb.close());
    const events = Array.from({ length: 6_000 }, (_, index) =>
      makeEvent({ occurredAt: DAY_START + index, logId: `f${index}`, url: `/${"x".repeat(500)}${index}` }),
    );
    await full.store(events);
    const runFull = () =>
      createArchiveDaysJob({
        database: full.database,
        archive: { storage: createFolderStorage(folder), duckdb },
        clock: () => NOW,
        zoneIds: null,
        log: silent,
      }).run({} as never, new AbortController().signal);

    await expect(runFull()).rejects.toThrow(/No space left|ENOSPC/);

    expect(listFiles(folder)).toEqual(["archive.json"]);
    disk.enlarge(64);
    await runFull();
    expect(listFiles(folder).filter((name) => name.endsWith(".parquet"))).toHaveLength(2);
  },
);
