import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { createDatabase } from "../../db/client.ts";
import { migrate } from "../../db/migrate.ts";
import { archiveCommand } from "../../src/cli/archive/archive.ts";
import { searchCommand } from "../../src/cli/search/search.ts";
import { hostileEvents, NOW, openArchiveWorld, ZONE } from "../archive/files/archive-world.ts";
import { runStoreCommand } from "../cli/run-store-command.ts";
import { storeEvents } from "../db/new-events.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { findDumpServer, startDumpServer } from "../support/postgres-of-dump.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const FOLDER = path.join(import.meta.dirname, "../../deploy/backup");
const found = findDumpServer();
const why = typeof found === "string" ? ` (skipped: ${found})` : "";
let server: Awaited<ReturnType<typeof startDumpServer>> | null = null;

beforeAll(async () => {
  if (typeof found !== "string") server = await startDumpServer(found);
}, 60_000);

afterAll(() => server?.stop());

function run(script: string, args: readonly string[], env: Record<string, string>) {
  const { PATH = "" } = process.env;
  const options = { env: { PATH, ...env }, encoding: "utf8" } as const;
  const { status, stdout, stderr } = spawnSync(path.join(FOLDER, script), args, options);
  return { status, text: `${stdout}${stderr}` };
}

async function createEmpty(name: string): Promise<string> {
  const client = new pg.Client({ connectionString: server?.url("postgres") });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  return server?.url(name) ?? "";
}

test.skipIf(typeof found === "string")(
  `a backup is restored into an empty place: the same events, a whole archive, and new events are stored${why}`,
  async () => {
    const url = await createEmpty("old");
    await migrate({ url });
    const database = createDatabase({
      url,
      max: 4,
      applicationName: "longwatch test",
      onError: () => undefined,
    });
    const world = await openArchiveWorld({ ...database, url, errors: [], drop: () => database.close() });
    await world.store(hostileEvents());
    const data = makeTemporaryFolder("backup-data");
    writeFileSync(path.join(data, "pseudonym.key"), "secret", { mode: 0o600 });
    const old = { DATABASE_URL: url, LONGWATCH_ARCHIVE_DIR: world.folder, LONGWATCH_DATA_DIR: data };
    const write = await runStoreCommand(archiveCommand, old, ["write"], { now: NOW });
    expect(write).toMatchObject({ code: 0 });
    const newest = makeEvent({ logId: "open", occurredAt: NOW - 60_000 });
    await world.store([newest], { isSealed: false });
    const search = async (env: Record<string, string>) => {
      const args = ["--zone", String(ZONE), "--from", "-10d", "--json", "--page-all"];
      return runStoreCommand(searchCommand, env, args, { now: NOW });
    };
    const before = await search(old);
    expect(before).toMatchObject({ code: 0, err: "" });

    const backups = makeTemporaryFolder("backups");
    const target = path.join(backups, "one");
    const keys = path.join(backups, "keys");
    expect(run("backup.sh", [target, keys], old)).toMatchObject({ status: 0 });
    expect(statSync(target).mode & 0o077).toBe(0);
    expect(readFileSync(path.join(keys, "pseudonym.key"), "utf8")).toBe("secret");
    expect(readdirSync(target).sort()).toEqual(["SHA256SUMS", "archive", "longwatch.dump"]);
    expect(run("backup.sh", [target], old)).toMatchObject({
      status: 1,
      text: expect.stringContaining("exists already"),
    });

    const elsewhere = { ...old, LONGWATCH_ARCHIVE_DIR: data };
    const files = readdirSync(world.folder, { recursive: true, encoding: "utf8" });
    const file = path.join(world.folder, files.find((name) => name.endsWith(".parquet")) ?? "");
    const aside = path.join(data, "aside");
    const withoutArchive = run("backup.sh", [path.join(backups, "two")], elsewhere);
    renameSync(file, aside);
    const withoutFile = run("backup.sh", [path.join(backups, "two")], old);
    renameSync(aside, file);
    for (const ran of [withoutArchive, withoutFile])
      expect(ran).toMatchObject({
        status: 1,
        text: expect.stringMatching(/the database names the file \S+\.parquet, which is not in/),
      });
    expect(existsSync(path.join(backups, "two"))).toBe(false);
    expect(run("backup.sh", [path.join(backups, "two")], old)).toMatchObject({ status: 0 });

    const place = makeTemporaryFolder("restored");
    const fresh = { DATABASE_URL: await createEmpty("fresh"), LONGWATCH_DATA_DIR: place };
    const occupied = run("restore.sh", [target], { ...fresh, DATABASE_URL: url });
    expect(occupied).toMatchObject({
      status: 1,
      text: expect.stringMatching(/the database has \d+ tables: name an empty/),
    });
    expect(run("restore.sh", [target], fresh)).toMatchObject({
      status: 0,
      text: expect.stringContaining("pseudonym.key back"),
    });
    const restored = { ...fresh, LONGWATCH_ARCHIVE_DIR: path.join(place, "archive") };
    expect(await search(restored)).toEqual(before);
    const verified = await runStoreCommand(archiveCommand, restored, ["verify"], { now: NOW });
    expect(verified).toMatchObject({ code: 0, out: expect.stringContaining("nothing differs") });
    await migrate({ url: fresh.DATABASE_URL });
    const next = createDatabase({
      url: fresh.DATABASE_URL,
      max: 2,
      applicationName: "longwatch test",
      onError: () => undefined,
    });
    const event = makeEvent({ logId: "after", occurredAt: NOW - 30_000 });
    expect(await storeEvents(next, ZONE, [event], { expectNew: true })).toMatchObject({ inserted: 1 });
    await next.close();

    writeFileSync(path.join(target, "longwatch.dump"), "x", { flag: "a" });
    const damaged = run("restore.sh", [target], { ...fresh, DATABASE_URL: await createEmpty("third") });
    expect(damaged).toMatchObject({
      status: 1,
      text: expect.stringContaining("is damaged: use another backup"),
    });
  },
  120_000,
);

test("what is missing is named with what to do, and a failed backup leaves no folder that looks whole", () => {
  const place = makeTemporaryFolder("nothing");
  const target = path.join(place, "backup");
  const none = { LONGWATCH_DATA_DIR: path.join(place, "none") };
  const text = (ran: ReturnType<typeof run>) => `${ran.status} ${ran.text}`;
  expect(text(run("backup.sh", [target], none))).toMatch(
    /^1 backup\.sh: (DATABASE_URL is not set and no service runs|pg_dump is missing)/,
  );
  expect(text(run("backup.sh", [target], { ...none, PATH: place }))).toContain(
    "pg_dump is missing: install the Postgres client",
  );
  expect(text(run("restore.sh", [place], { ...none, DATABASE_URL: "x" }))).toMatch(
    /no SHA256SUMS|is missing: install/,
  );
  if (typeof found === "string") return;
  // The tests' server is newer than some machines' pg_dump. Either way a server that is not there fails.
  mkdirSync(path.join(place, "data"));
  const runtime = JSON.stringify({ pid: 1, databaseUrl: `${inject("postgresUrl")}_none`, httpUrl: null });
  writeFileSync(path.join(place, "data", "runtime.json"), runtime);
  const failed = run("backup.sh", [target], { LONGWATCH_DATA_DIR: path.join(place, "data") });
  expect(text(failed)).toMatch(/pg_dump failed\. If it names a version mismatch: install the client/);
  expect(existsSync(target)).toBe(false);
});
