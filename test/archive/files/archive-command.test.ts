import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { listRetired, listValidFiles } from "#db/archive/archive-files.ts";
import { archiveCommand } from "#faces/cli/archive/archive.ts";
import { eraseCommand } from "#faces/cli/erase/erase.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { runStoreCommand, type Terminal } from "../../faces/cli/run-store-command.ts";
import { environment } from "../../people/erasure-world.ts";
import { personalEvent } from "../../people/some-events.ts";
import { makePipe } from "../../support/make-pipe.ts";
import { sample } from "../../support/sample.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import {
  DAY,
  hostileEvents,
  inFileOrder,
  listFiles,
  NOW,
  openArchiveWorld,
  readEventsFile,
  readRecordsFile,
  recordOf,
  ZONE,
} from "./archive-world.ts";

const EVENTS = hostileEvents();
const world = await openArchiveWorld();

beforeAll(async () => {
  await world.store(EVENTS);
  // Of another zone, and of a day that can still change. No test erases its address.
  const young = EVENTS.slice(0, 1).map((event) => ({
    ...event,
    occurredAt: NOW - 86_400_000,
    ip: "192.0.2.250",
  }));
  await world.store(young, { zoneId: 777 });
  await run("write");
});

const run = (line: string, terminal: Partial<Terminal> = {}) =>
  runStoreCommand(
    archiveCommand,
    { ...environment(world.database), LONGWATCH_ARCHIVE_DIR: world.folder },
    line.split(" "),
    { now: NOW, ...terminal },
  );

const files = () => listValidFiles(world.database.db, { zoneId: ZONE, day: DAY });

/** A copy of the archive folder whose events file is changed by one byte. */
function damagedCopy(): string {
  const copy = path.join(makeTemporaryFolder("copy"), "archive");
  cpSync(world.folder, copy, { recursive: true });
  const name = path.join(
    copy,
    listFiles(copy).find((file) => file.startsWith(`events/zone=${ZONE}/`) && file.endsWith(".parquet")) ??
      "",
  );
  const bytes = readFileSync(name);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  writeFileSync(name, bytes);
  return copy;
}

test("archive status shows what is archived and how large it is", async () => {
  const shown = await run("status");
  const json = JSON.parse((await run("status --json")).out);

  expect(shown.out).toContain(`${DAY} to ${DAY}`);
  const bytesOf = async (kind: string) => (await files()).find((file) => file.kind === kind)?.bytes;
  expect(json.waiting).not.toContainEqual(expect.objectContaining({ zoneId: ZONE }));
  expect(json).toMatchObject({ folder: world.folder, hotDays: 7 });
  expect(json.zones.find(({ zoneId }: { zoneId: number }) => zoneId === ZONE)).toMatchObject({
    days: 1,
    events: EVENTS.length,
    eventBytes: await bytesOf("events"),
    recordBytes: await bytesOf("records"),
  });
});

test("archive status says when the next day can be archived, or why no day is archived", async () => {
  const shown = await run("status");
  const json = JSON.parse((await run("status --json")).out);
  const off = await runStoreCommand(archiveCommand, environment(world.database), ["status"], { now: NOW });
  const empty = await createMigratedDatabase();
  onTestFinished(() => empty.drop());
  const folder = { ...environment(empty), LONGWATCH_ARCHIVE_DIR: world.folder };
  const before = await runStoreCommand(archiveCommand, folder, ["status"], { now: NOW });

  expect(shown.out).toMatch(
    /\n\d{4}-\d\d-\d\d can be archived from [-\d]+ 01:00 UTC on, 73 hours after its end: /,
  );
  const day = Date.parse(json.nextDay.day);
  expect(day).toBeGreaterThan(NOW - 5 * 86_400_000);
  expect(Date.parse(json.nextDay.settledAt) - day).toBe(97 * 3_600_000);
  expect(off.out).toContain("no day is archived: set LONGWATCH_ARCHIVE_DIR");
  expect(before.out).toContain("no event is stored yet, so there is no day to archive");
});

test("the SQL of docs/archive.md computes the sum of a statement", async () => {
  const doc = readFileSync(new URL("../../../docs/archive.md", import.meta.url), "utf8");
  const [, sql = ""] = /-- The sum of an events file, in DuckDB\n([^;]*);/.exec(doc) ?? [];
  const [events] = (await files()).filter(({ kind }) => kind === "events");
  const name = path.join(world.folder, events?.path ?? "");
  const [rows] = await world.duckdb.run([{ sql: sql.replace(/'archive[^']*'/, `'${name}'`) }]);

  expect(rows?.[0]).toEqual([BigInt(events?.sum ?? 0)]);
});

test("archive verify finds nothing in an intact archive, with and without the database", async () => {
  const copy = path.join(makeTemporaryFolder("copy"), "archive");
  cpSync(world.folder, copy, { recursive: true });

  for (const line of ["verify", `verify --offline ${copy}`]) {
    const { out, code } = await run(line);
    expect(out).toMatch(/^\d days?, \d files, .*nothing differs\n$/);
    expect(code).toBe(0);
  }
});

test("archive verify --offline names a damaged file and exits with 1", async () => {
  const { out, code } = await run(`verify --offline ${damagedCopy()}`);

  expect(out).toMatch(
    /1 problem:\n {2}events\/zone=101\/day=2026-11-18\/[0-9a-f]{16}\.parquet has another SHA-256/,
  );
  expect(code).toBe(1);
});

test("archive verify names files that are not part of the archive, and a manifest row without its file", async () => {
  const [events] = await files();
  const name = path.join(world.folder, events?.path ?? "");
  const unnamed = path.join(path.dirname(name), "0123456789abcdef.parquet");
  const foreign = path.join(path.dirname(name), "notes.txt");
  for (const stranger of [unnamed, foreign]) {
    writeFileSync(stranger, "x");
    utimesSync(stranger, 1, 1);
  }
  const copy = path.join(makeTemporaryFolder("copy"), "archive");
  cpSync(world.folder, copy, { recursive: true });

  const [here, there] = [await run("verify"), await run(`verify --offline ${copy}`)];

  expect(here.out).toMatch(/0123456789abcdef\.parquet is not in the manifest; the service removes it/);
  expect(there.out).toMatch(/0123456789abcdef\.parquet is named by no statement/);
  for (const { out, code } of [here, there]) {
    expect(out).toMatch(/notes\.txt is no file of the archive, .*; move it elsewhere/);
    expect(out.match(/zone=101\/day=2026-11-18\/[^ ]+ is n/g)).toHaveLength(2);
    expect(code).toBe(1);
  }
  for (const stranger of [unnamed, foreign]) rmSync(stranger);
  renameSync(name, `${copy}.away`);
  const gone = await run("verify");
  renameSync(`${copy}.away`, name);
  expect(gone.out).toContain(`${events?.path} is missing`);
  expect((await run("verify")).out).toContain("nothing differs");
});

test.each(["a pipe", "a symbolic link to the file", "a symbolic link to itself", "a folder"])(
  "archive verify --offline names %s in the place of a file or a statement, and checks everything else",
  async (what) => {
    const copy = path.join(makeTemporaryFolder("copy"), "archive");
    cpSync(world.folder, copy, { recursive: true });
    const events =
      listFiles(copy).find((file) => file.startsWith("events/") && file.endsWith(".parquet")) ?? "";
    const away = makeTemporaryFolder("away");
    const place = (name: string) => {
      const at = path.join(copy, name);
      renameSync(at, path.join(away, path.basename(name)));
      if (what === "a pipe") makePipe(at);
      else if (what === "a folder") mkdirSync(at);
      else symlinkSync(what.endsWith("itself") ? at : path.join(away, path.basename(name)), at);
    };
    place(events);
    const before = await run(`verify --offline ${copy}`);
    expect(before.out).toContain(`${events} is not a regular file`);
    expect(before.out).toMatch(/: 1 problem:/);
    expect(before.code).toBe(1);

    // The gate has one of them in the place of a statement.
    if (sample([what], (one) => one !== "a pipe").length === 0) return;
    place(`events/zone=${ZONE}/day=${DAY}/_statement.json`);
    const { out, code } = await run(`verify --offline ${copy}`);
    expect(out).toMatch(/_statement\.json is not a statement of this version|is named by no statement/);
    expect(code).toBe(1);
  },
);

test("archive verify finds an archive day that is not what the roll-up counted", async () => {
  const { pool } = world.database;
  await pool.query(
    "update rule_buckets set total = total + 1, other = other + 1 where width = 3600 and rule_id = '942100'",
  );

  const { out, code } = await run("verify");

  expect(out).toMatch(/has \d+ events of rule "942100" in hour \d+, the roll-up \d+/);
  expect(code).toBe(1);
  await pool.query(
    "update rule_buckets set total = total - 1, other = other - 1 where width = 3600 and rule_id = '942100'",
  );
});

test("archive restore brings a dropped day back, byte for byte, and the day is archived to the same files again", async () => {
  const { pool } = world.database;
  const before = await files();
  await pool.query(`drop table waf_events_20261118, raw_blocks_20261118`);

  const { out, code } = await run(`restore --zone ${ZONE} --day ${DAY}`);

  expect(out).toContain(`${EVENTS.length} events; ${EVENTS.length} records copied`);
  expect(code).toBe(0);
  expect(await files()).toEqual([]);
  expect((await run("write")).out).toBe("1 day written\n");
  const after = await files();
  expect(after.map(({ sha256 }) => sha256).sort()).toEqual(before.map(({ sha256 }) => sha256).sort());
  const pathOf = (kind: string) =>
    path.join(world.folder, after.find((file) => file.kind === kind)?.path ?? "");
  expect(await readEventsFile(world, pathOf("events"))).toEqual(inFileOrder(EVENTS));
  expect(await readRecordsFile(world, pathOf("records"))).toEqual(inFileOrder(EVENTS).map(recordOf));
});

test("erase finds and empties events that are only in the archive, and counts them", async () => {
  const day = "2026-11-10";
  const at = Date.parse(day);
  const ip = "198.51.100.23";
  await world.store([personalEvent("theirs", at, ip), personalEvent("other", at + 1, "198.51.100.24")], {
    zoneId: 105,
  });
  await run("write");
  await world.database.pool.query("drop table waf_events_20261110, raw_blocks_20261110");
  // Another zone's day may still be in Postgres.
  await world.store([personalEvent("elsewhere", at, "198.51.100.25")], { zoneId: 106, isSealed: false });
  const erase = (line: string) =>
    runStoreCommand(
      eraseCommand,
      { ...environment(world.database), LONGWATCH_ARCHIVE_DIR: world.folder },
      line.split(" "),
      { now: NOW },
    );

  const counted = JSON.parse((await erase(`--ip ${ip} --dry-run --json`)).out);
  const erased = JSON.parse((await erase(`--ip ${ip} --yes --json`)).out);

  expect(await listRetired(world.database.db, 0)).toEqual([]);
  expect(readdirSync(path.join(world.folder, `events/zone=105/day=${day}`))).toHaveLength(2);
  expect(erased.remaining).toEqual([]);
  expect(counted.found.events).toBe(1);
  expect(erased.counts).toMatchObject({ events: 1, records: 1 });
  const [file] = (await listValidFiles(world.database.db, { zoneId: 105, day })).filter(
    ({ kind }) => kind === "events",
  );
  const events = await readEventsFile(world, path.join(world.folder, file?.path ?? ""));
  expect(events.map(({ ip, ua, url, message, ruleId }) => [ip, ua, url, message, ruleId])).toEqual([
    ["erased", "", "", "", "942100"],
    [
      "198.51.100.24",
      "Mozilla of a person",
      "https://shop.example.test/me?mail=a@b.test",
      "matched a@b.test",
      "942100",
    ],
  ]);
});

test("archive restore stops at Ctrl-C, and the day stays in the archive", async () => {
  await world.database.pool.query(`drop table waf_events_20261118, raw_blocks_20261118`);
  const before = await files();

  const interrupted = AbortSignal.abort(new Error("stopped"));
  const stopped = await run(`restore --zone ${ZONE} --day ${DAY}`, { interrupted });

  expect(stopped).toMatchObject({ code: 1, out: "", err: "longwatch archive restore: stopped\n" });
  expect(await files()).toEqual(before);
});

test("archive restore refuses a day that is not in the archive", async () => {
  const { err, code } = await run(`restore --zone ${ZONE} --day 2026-01-01`);

  expect(err).toContain(`2026-01-01 is not an archive day of zone ${ZONE}`);
  expect(code).toBe(1);
});
