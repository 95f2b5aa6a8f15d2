import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, expect, test } from "vitest";
import { findReplacement, listRetired, listValidFiles } from "#db/archive/archive-files.ts";
import { createArchiveReader } from "#db/archive/archive-reader.ts";
import { readArchivedDays } from "#db/archive/archived-days.ts";
import { bringCurrent } from "#db/archive/bring-file.ts";
import { listRemaining } from "#db/people/erasures.ts";
import { holdLease } from "#db/postgres/hold-lease.ts";
import { describeErasedFile } from "#health/service/settings.ts";
import { ARCHIVE_LEASE, claimStorage } from "#jobs/archive/archive-store.ts";
import { cleanArchive } from "#jobs/archive/clean-archive.ts";
import { writeDay } from "#jobs/archive/write-day.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { eraseAddress } from "#people/privacy/erase-address.ts";
import { singleAddress } from "#people/rules/erasure-target.ts";
import { silent } from "../../ingest/ingest-support.ts";
import { KEY } from "../../people/erasure-world.ts";
import { personalEvent } from "../../people/some-events.ts";
import { DAY, DAY_START, NOW, openArchiveWorld } from "./archive-world.ts";

/** What becomes of the files that an erasure has replaced. */

const world = await openArchiveWorld();
const RETENTION = { rawDays: 400, ipDays: 400, eventDays: 400, rollUpDays: 800 };

beforeAll(async () => {
  await claimStorage(world.database.db, world.storage);
});

async function archive(zoneId: number, ip: string) {
  const events = Array.from({ length: 5 }, (_, index) =>
    personalEvent(`e${index}`, DAY_START + index, index < 3 ? ip : "198.51.100.24"),
  );
  await world.store(events, { zoneId });
  await writeDay(world, { zoneId, day: DAY });
  return readArchivedDays(world.database.db, zoneId, { from: DAY_START, to: DAY_START + DAY_MS });
}

function erase(zoneId: number, ip: string, waitMs?: number) {
  const network = singleAddress(ip);
  if (network === null) throw new Error(`${ip} is no address`);
  const deps = { database: world.database, key: KEY, clock: () => NOW, archive: world };
  return eraseAddress(
    { ...deps, ...(waitMs === undefined ? {} : { waitMs }) },
    { network, zoneId, includeMasked: false, untilAt: NOW },
    { actor: "alice", reason: null },
    new AbortController().signal,
  );
}

test("an erasure finds every form of an address in files that were written before the forms were one", async () => {
  const forms = [
    "203.0.113.9",
    "203.0.113.9:51234",
    "203.0.113.9, 10.0.0.1",
    "::ffff:203.0.113.9",
    "203.0.113.90",
  ];
  await world.store(
    forms.map((form, index) => personalEvent(`f${index}`, DAY_START + index, form)),
    { zoneId: 503 },
  );
  await writeDay(world, { zoneId: 503, day: DAY });

  expect((await erase(503, "203.0.113.9:80")).counts).toMatchObject({ events: 4, records: 4 });

  const { rows } = await world.database.pool.query(
    "select ip from waf_events where zone_id = 503 order by occurred_at",
  );
  expect(rows.map(({ ip }) => ip)).toEqual(["erased", "erased", "erased", "erased", "203.0.113.90"]);
});

const filesOf = (zoneId: number) => ["events", "records"].map((kind) => `${kind}/zone=${zoneId}/day=${DAY}`);

test("an erasure deletes the replaced files, and a search that has read the manifest before goes on with the new file", async () => {
  const ip = "198.51.100.23";
  const [day] = await archive(501, ip);
  if (day?.records == null) throw new Error("the day is not archived");
  const { db } = world.database;
  const damaged: string[] = [];
  const reader = createArchiveReader({
    duckdb: world.duckdb,
    storage: world.storage,
    scratch: world.folder,
    onDamaged: ({ file }) => damaged.push(file.path),
    findReplacement: (file) => findReplacement(db, file),
  });
  const ips = () => {
    const sql = `select ip from read_parquet('${reader.pathOf(day.events)}', hive_partitioning = false) order by ip`;
    return reader.read([day.events], [{ sql, values: [] }]);
  };
  expect(await ips()).toEqual(
    [...Array.from({ length: 3 }, () => ip), "198.51.100.24", "198.51.100.24"].sort(),
  );

  const { counts, remaining } = await erase(501, ip);

  expect({ events: counts.events, remaining }).toEqual({ events: 3, remaining: [] });
  expect([day.events, day.records].map((file) => existsSync(path.join(world.folder, file.path)))).toEqual([
    false,
    false,
  ]);
  for (const folder of filesOf(501)) {
    const names = readdirSync(path.join(world.folder, folder)).filter((name) => name.endsWith(".parquet"));
    expect(names).toHaveLength(1);
    for (const name of names)
      expect(readFileSync(path.join(world.folder, folder, name)).includes(ip)).toBe(false);
  }
  expect(await ips()).toEqual(["198.51.100.24", "198.51.100.24", "erased", "erased", "erased"]);
  const [valid] = await listValidFiles(db, { zoneId: 501, day: DAY, kind: "events" });
  expect(await bringCurrent({ db, storage: world.storage }, day.events)).toBe(
    path.join(world.folder, valid?.path ?? ""),
  );
  expect(damaged).toEqual([]);
});

test("while another process holds the archive, an erasure names the files and events that remain until the service cleans", async () => {
  const ip = "198.51.100.33";
  const [day] = await archive(502, ip);
  const { database } = world;
  const { db } = database;

  const erased = await holdLease(database, ARCHIVE_LEASE, () => erase(502, ip, 0));

  const until = NOW + 2 * HOUR_MS;
  const problem = "another process holds the lease archive; try again when that process has finished";
  const files = [day?.events.path, day?.records?.path].map((path) => ({ path, events: 3, until, problem }));
  expect(erased?.remaining).toEqual(files);
  expect((await listRemaining(db, NOW)).sort((one, other) => (one.path < other.path ? -1 : 1))).toEqual(
    files,
  );
  expect(describeErasedFile({ path: "a", events: 3, until, problem: "held" })).toBe(
    "3 erased events until 2026-11-22 04:00 UTC: a was not deleted (held)",
  );

  await database.pool.query("update archive_files set retired_at = retired_at - interval '2 hours'");
  await cleanArchive({ database, archive: world, log: silent, retention: RETENTION, hotDays: null }, NOW);

  expect(await listRetired(db, 0)).toEqual([]);
  // The latest time is not over, but the files are gone.
  expect(await listRemaining(db, NOW)).toEqual([]);
});
