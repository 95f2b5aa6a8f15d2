import path from "node:path";
import { expect, test } from "vitest";
import { createStorage } from "#app/open-archive-store.ts";
import { parseConfig } from "#config/config.ts";
import { listValidFiles } from "#db/archive/archive-files.ts";
import { archiveCommand } from "#faces/cli/archive/archive.ts";
import { eraseCommand } from "#faces/cli/erase/erase.ts";
import { exportCommand } from "#faces/cli/export/export.ts";
import { createArchiveDaysJob } from "#jobs/archive/archive-days.ts";
import { claimStorage } from "#jobs/archive/archive-store.ts";
import { createManagePartitionsJob } from "#jobs/health/manage-partitions.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { runStoreCommand } from "../../faces/cli/run-store-command.ts";
import { silent } from "../../ingest/ingest-support.ts";
import { environment } from "../../people/erasure-world.ts";
import { personalEvent } from "../../people/some-events.ts";
import { shareS3Server } from "../../support/s3-server.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import {
  type ArchiveWorld,
  DAY,
  DAY_START,
  hostileEvents,
  NOW,
  openArchiveWorld,
  openStorage,
} from "./archive-world.ts";

/** Days that are archived into a bucket. */

const EVENTS = hostileEvents();
const PREFIX = "kept/logs";
const RETENTION = { rawDays: 400, ipDays: 400, eventDays: 400, rollUpDays: 800 };
const server = await shareS3Server();
let world: ArchiveWorld;

/** A database whose archive is in the bucket under this prefix. */
async function openBucketWorld(prefix: string): Promise<ArchiveWorld> {
  world = await openArchiveWorld(undefined, server.bucket(prefix));
  return world;
}

const write = (storage = world.storage) =>
  createArchiveDaysJob({
    database: world.database,
    archive: { ...world, storage },
    clock: () => NOW,
    zoneIds: null,
    log: silent,
  }).run({} as never, new AbortController().signal);

const manifest = () => listValidFiles(world.database.db, { day: DAY });

test("while the bucket cannot be reached, days wait in Postgres and the other work of the job is done", async () => {
  await openBucketWorld("away");
  await world.store(EVENTS);
  const { database } = world;
  const said: string[] = [];
  const manage = createManagePartitionsJob({
    database,
    archive: world,
    clock: () => NOW,
    log: { ...silent, error: (_: object, event: string) => said.push(event) } as never,
    retention: RETENTION,
    hotDays: 4,
  });
  server.refuse = () => 503;

  await expect(write()).rejects.toThrow(/refused GET with 503/);
  await manage.run({} as never, new AbortController().signal);

  expect(said).toEqual(["archive not cleaned"]);
  expect(await manifest()).toEqual([]);
  server.refuse = ({ method }) => (method === "PUT" ? 403 : null);
  await expect(write()).rejects.toThrow(/may do s3:PutObject/);
  expect(await manifest()).toEqual([]);
  server.refuse = () => null;
  await write();
  expect((await manifest()).map(({ kind, uploadedAt }) => [kind, uploadedAt !== null])).toEqual([
    ["events", true],
    ["records", true],
  ]);
});

test("a bucket of another database, one with files of nobody, and an empty one in place of a full one are refused", async () => {
  await openBucketWorld("claimed");
  await world.store(EVENTS);
  await write();
  const claim = (prefix: string, of = world) =>
    claimStorage(of.database.db, openStorage(of.folder, server.bucket(prefix)));
  const first = world;
  const other = await openArchiveWorld();

  // Two replicas share a bucket.
  await Promise.all([claim("claimed"), claim("claimed")]);
  await expect(claim("claimed", other)).rejects.toThrow(
    "the archive bucket s3://waf-archive/claimed belongs to another Longwatch database (archive.json); set LONGWATCH_ARCHIVE_URL to a place of its own",
  );
  await expect(claim("empty", first)).rejects.toThrow(
    /s3:\/\/waf-archive\/empty is empty, but the manifest names 2 files/,
  );
  await server.bucket("claimed").remove("archive.json");
  await expect(claim("claimed", other)).rejects.toThrow(/holds files but no archive\.json/);
});

test("files that were written into a folder are put into the bucket by the next run, and stay in the manifest", async () => {
  await openBucketWorld("moved");
  await world.store(EVENTS);
  await write(createFolderStorage(world.folder));
  const before = await manifest();
  expect(before.map(({ uploadedAt }) => uploadedAt)).toEqual([null, null]);
  // Until then the folder is the place of the files.
  const moving = createStorage(
    parseConfig({ ...server.environment, LONGWATCH_ARCHIVE_DIR: world.folder }).archive,
    world.database.db,
  );
  const target = makeTemporaryFolder("copies");
  for (const file of before)
    expect([await moving.check(file), await moving.copy(file, path.join(target, file.kind))]).toEqual([
      null,
      null,
    ]);

  await write();

  const after = await manifest();
  expect(after.map(({ sha256 }) => sha256)).toEqual(before.map(({ sha256 }) => sha256));
  expect(after.every(({ uploadedAt }) => uploadedAt !== null)).toBe(true);
  const replica = openStorage(makeTemporaryFolder("replica"), server.bucket("moved"));
  for (const file of after) expect(await replica.bring(file)).toBeNull();
  expect((await replica.list()).map((file) => path.basename(file.path))).toContain("_statement.json");
});

/** Runs a command on a machine whose cache is empty. */
const run = (
  create: Parameters<typeof runStoreCommand>[0],
  line: string,
  folder = makeTemporaryFolder("machine"),
) =>
  runStoreCommand(
    create,
    { ...environment(world.database), ...server.environment, LONGWATCH_ARCHIVE_DIR: folder },
    line.split(" "),
    { now: NOW },
  );

test("the commands write, verify, export, erase and restore days of a bucket from a machine without files", async () => {
  await openBucketWorld(PREFIX);
  const ip = "198.51.100.23";
  await world.store([
    personalEvent("theirs", DAY_START, ip),
    personalEvent("other", DAY_START + 1, "198.51.100.24"),
  ]);
  const cache = makeTemporaryFolder("machine");

  expect((await run(archiveCommand, "write", cache)).out).toBe("1 day written\n");
  await world.database.pool.query("drop table waf_events_20261118, raw_blocks_20261118");
  expect((await run(archiveCommand, "verify")).out).toMatch(
    /^1 day, 2 files, 2 events, .*nothing differs\n$/,
  );
  const target = path.join(makeTemporaryFolder("exports"), "day");
  const exported = await run(
    exportCommand,
    `--zone 101 --format parquet --from ${DAY} --to 2026-11-19 --out ${target}`,
  );
  expect(exported).toMatchObject({ code: 0 });
  expect((await run(archiveCommand, `verify --offline ${target}`)).out).toContain("nothing differs");

  const bucket = server.bucket(PREFIX);
  const before = await manifest();
  const erased = JSON.parse((await run(eraseCommand, `--ip ${ip} --yes --json`)).out);
  expect(erased.counts).toMatchObject({ events: 1, records: 1 });
  for (const file of before) expect(await bucket.head(file.path)).toBeNull();
  // The caches of other processes keep a file for an hour and five minutes at most.
  const until = expect.stringMatching(
    new RegExp(`^${new Date(NOW + 65 * 60_000).toISOString().slice(0, 16)}`),
  );
  expect(erased.remaining).toEqual(
    before.map(({ path: name }) => ({ path: name, events: 1, until, problem: null })),
  );
  expect((await run(archiveCommand, "verify")).out).toContain("nothing differs");

  const restored = await run(archiveCommand, `restore --zone 101 --day ${DAY}`);
  expect(restored.out).toContain("2 events; 2 records copied");
  const { rows } = await world.database.pool.query("select ip from waf_events order by occurred_at");
  expect(rows).toEqual([{ ip: "erased" }, { ip: "198.51.100.24" }]);
});

test("archive verify names what the bucket lacks and what the manifest does not name", async () => {
  await openBucketWorld(PREFIX.replace("kept", "listed"));
  await world.store(EVENTS);
  await write();
  const [events, records] = await manifest();
  const bucket = server.bucket("listed/logs");
  const put = (name: string) =>
    bucket.put(
      name,
      { text: "", bytes: 0, sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
      { isNew: true },
    );
  await put(`events/zone=101/day=${DAY}/notes.txt`);
  await bucket.remove(records?.path ?? "");
  const verify = () =>
    runStoreCommand(
      archiveCommand,
      {
        ...environment(world.database),
        ...server.environment,
        LONGWATCH_ARCHIVE_URL: "s3://waf-archive/listed/logs",
        LONGWATCH_ARCHIVE_DIR: makeTemporaryFolder("machine"),
      },
      ["verify"],
      { now: NOW },
    );

  const { out, code } = await verify();
  expect(out).toContain(`${records?.path} is missing`);
  expect(out).toMatch(/notes\.txt is no file of the archive/);
  expect(out).not.toContain(events?.path ?? "");
  expect(code).toBe(1);
});
