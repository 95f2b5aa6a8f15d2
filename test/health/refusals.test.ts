import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createTarWriter, listTar } from "#lib/tar.ts";
import { MIGRATED } from "../db/before-baseline.ts";
import { createTestDatabase } from "../support/database.ts";
import { sample } from "../support/sample.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { nextFile, openBackupWorld, run, type Settings } from "./backup-world.ts";

const world = await openBackupWorld();
const backup = nextFile();

beforeAll(async () => {
  expect(await run(world.settings, ["backup", "--out", backup])).toMatchObject({ code: 0 });
});

async function listMembers(file: string) {
  const handle = await open(file);
  try {
    return await listTar(handle);
  } finally {
    await handle.close();
  }
}

/** Writes the backup again with another manifest, as its writer would, and with members that do not belong to it. */
async function rewrite(
  edit: (manifest: Record<string, unknown>) => object,
  strangers: readonly [first: string, last: string] | null = null,
): Promise<string> {
  const file = nextFile();
  const handle = await open(file, "wx");
  const tar = createTarWriter(handle, 0);
  const whole = readFileSync(backup);
  if (strangers !== null) await tar.add(strangers[0], [Buffer.from("x")]);
  for (const { name, offset, bytes } of await listMembers(backup)) {
    const content = whole.subarray(offset, offset + bytes);
    if (name === "manifest.json") {
      const text = JSON.stringify(edit(JSON.parse(content.toString()) as Record<string, unknown>));
      const { sha256 } = await tar.add(name, [Buffer.from(text)]);
      await tar.add("manifest.json.sha256", [Buffer.from(`${sha256}  manifest.json\n`)]);
    } else if (name !== "manifest.json.sha256") await tar.add(name, [content]);
  }
  if (strangers !== null) await tar.add(strangers[1], [Buffer.from("x")]);
  await tar.finish();
  await handle.close();
  return file;
}

async function emptyPlace(): Promise<Settings> {
  const data = makeTemporaryFolder("refused");
  const { url } = await createTestDatabase();
  return { DATABASE_URL: url, LONGWATCH_DATA_DIR: data, LONGWATCH_ARCHIVE_DIR: path.join(data, "archive") };
}

const check = (file: string) => run({ LONGWATCH_DATA_DIR: world.data }, ["restore", file, "--check"]);

test("a whole backup is checked without a database", async () => {
  expect(await check(backup)).toMatchObject({
    code: 0,
    err: "",
    out: expect.stringMatching(
      /is complete and undamaged: [\d,]+ rows and 2 files of the archive, made by Longwatch/,
    ),
  });
});

test("members that do not belong to the backup, and a table that is not Longwatch's, are named and not restored", async () => {
  const strangers = ["manifest.json", "archive/events/zone=101/evil\u001b.parquet"] as const;
  const file = await rewrite((manifest) => manifest, strangers);
  const named =
    "2 members of the file do not belong to the backup and are not restored: manifest.json, archive/events/zone=101/evil\\u001b.parquet.\n";
  const { code, out } = await check(file);
  expect([code, out.slice(out.indexOf("\n") + 1)]).toEqual([0, named]);
  const json = await run({ LONGWATCH_DATA_DIR: world.data }, ["restore", file, "--check", "--json"]);
  expect(JSON.parse(json.out)).toMatchObject({ unknownMembers: strangers });
  const withTable = await rewrite((manifest) => {
    const tables = manifest["tables"] as { name: string }[];
    for (const table of tables) if (table.name === "silences") table.name = "diaries";
    return manifest;
  }, strangers);
  const place = await emptyPlace();
  const restored = await run(place, ["restore", withTable]);
  expect(restored).toMatchObject({ code: 0, out: expect.stringContaining(named) });
  expect(restored.out).toContain("Not restored, because Longwatch does not make them: the tables diaries.");
  const files = readdirSync(place["LONGWATCH_ARCHIVE_DIR"] ?? "", { recursive: true }).map(String);
  expect(files.filter((one) => one.includes("evil"))).toEqual([]);
});

test("one wrong bit in any member is found, and the error names the member and both hashes", async () => {
  const members = (await listMembers(backup)).filter(({ bytes }) => bytes > 0);
  expect(members.length).toBeGreaterThan(40);
  // The gate has one table, one partition, one file of the archive, and the members of the backup itself.
  const kindOf = ({ name }: { name: string }) => name.split("/").slice(0, -1).join("/").replace(/=.*/, "");
  const isFirst = (one: { name: string }) => members.find((other) => kindOf(other) === kindOf(one)) === one;
  const own = /^manifest/;
  for (const { name, offset, bytes } of sample(members, (one) => !isFirst(one) && !own.test(one.name))) {
    const file = nextFile();
    copyFileSync(backup, file);
    const handle = openSync(file, "r+");
    const byte = Buffer.alloc(1);
    const at = offset + Math.floor(bytes / 2);
    readSync(handle, byte, 0, 1, at);
    writeSync(handle, Buffer.from([byte.readUInt8() ^ 4]), 0, 1, at);
    closeSync(handle);
    const { code, err } = await check(file);
    expect({ name, code }).toEqual({ name, code: 1 });
    // A wrong bit in the hash of the manifest looks like one in the manifest.
    const shown = name === "manifest.json.sha256" ? "manifest.json" : name;
    expect(err).toContain(`is damaged: the member ${shown} has the SHA-256 hash `);
  }
}, 60_000);

test.each([
  [
    "a part of a backup",
    (file: string) => truncateSync(file, 20_000),
    /is not a complete backup: the file ends at byte 20000/,
  ],
  [
    "a backup without its end",
    (file: string) => truncateSync(file, readFileSync(file).length - 1_024),
    /before the end of the tar archive/,
  ],
  [
    "a file that is no tar archive",
    (file: string) => writeFileSync(file, "x".repeat(2_000)),
    /is not a complete backup: there is no tar header at byte 0/,
  ],
  [
    "an empty file",
    (file: string) => writeFileSync(file, ""),
    /is not a complete backup: the file ends at byte 0/,
  ],
])("%s is refused with its reason", async (_, damage, reason) => {
  const file = nextFile();
  copyFileSync(backup, file);
  damage(file);
  const { code, err } = await check(file);
  expect(code).toBe(1);
  expect(err.match(new RegExp(reason, "g"))).toHaveLength(1);
});

test("another tar archive is refused", async () => {
  const file = nextFile();
  const handle = await open(file, "wx");
  const tar = createTarWriter(handle, 0);
  await tar.add("readme", [Buffer.from("x")]);
  await tar.finish();
  await handle.close();
  expect(await check(file)).toMatchObject({
    code: 1,
    err: expect.stringContaining("it has no manifest.json"),
  });
});

test.each([
  ["a later container", { format: 2, version: "99.0.0" }],
  ["later tables", { migration: 9_999_999_999_999, version: "99.0.0" }],
])("a backup of a newer version with %s is refused, and the version is named", async (_, later) => {
  const file = await rewrite((manifest) => ({ ...manifest, ...later }));
  expect(await check(file)).toMatchObject({
    code: 1,
    err: expect.stringMatching(
      /was made by Longwatch 99\.0\.0, which is newer than this one \([\d.]+\): restore it with that version/,
    ),
  });
});

test("a backup of tables before the baseline is refused, and the version that restores it is named", async () => {
  const file = await rewrite((manifest) => ({ ...manifest, migration: MIGRATED.by02, version: "0.2.0" }));
  expect(await check(file)).toMatchObject({
    code: 1,
    err: expect.stringContaining(
      "does not have: restore it with Longwatch 0.3.0 of the commit ba571f6e, and then start this version on that database",
    ),
  });
});

test("a backup that is refused restores nothing: its place takes the whole one, which keeps the files that are there", async () => {
  const place = await emptyPlace();
  const damaged = nextFile();
  copyFileSync(backup, damaged);
  const last = (await listMembers(damaged)).find(({ name }) => name.startsWith("tables/waf_events/"));
  const handle = openSync(damaged, "r+");
  writeSync(handle, "xx", last?.offset);
  closeSync(handle);
  expect(await run(place, ["restore", damaged])).toMatchObject({
    code: 1,
    err: expect.stringMatching(
      /longwatch restore: \S+ is damaged: the member tables\/waf_events\/\S+ has .* Use another backup/,
    ),
  });
  expect(readdirSync(place["LONGWATCH_DATA_DIR"] ?? "")).toEqual([]);

  const folder = place["LONGWATCH_ARCHIVE_DIR"] ?? "";
  mkdirSync(folder);
  writeFileSync(path.join(folder, "archive.json"), `{"format":1,"id":"${"0".repeat(32)}"}`);
  expect(await run(place, ["restore", backup])).toMatchObject({
    code: 1,
    err: expect.stringContaining("belongs to another Longwatch database"),
  });

  const miscounted = await rewrite((manifest) => {
    const tables = manifest["tables"] as { name: string; parts: { rows: number }[] }[];
    const part = tables.find(({ name }) => name === "waf_events")?.parts[0];
    if (part !== undefined) part.rows += 1;
    return manifest;
  });
  const own = path.join(folder, "own");
  const elsewhere = { ...place, LONGWATCH_ARCHIVE_DIR: own };
  expect(await run(elsewhere, ["restore", miscounted])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/the member tables\/waf_events\/\S+ has \d+ rows, and the manifest says \d+/),
  });

  expect(await run(elsewhere, ["restore", backup])).toMatchObject({ code: 0 });
  const [name = "", kept = ""] = readdirSync(own, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".parquet"),
  );
  const whole = readFileSync(path.join(own, name));
  writeFileSync(path.join(own, name), "x");
  const { ino } = statSync(path.join(own, kept));
  const { url } = await createTestDatabase();
  expect(await run({ ...elsewhere, DATABASE_URL: url }, ["restore", backup])).toMatchObject({ code: 0 });
  expect(readFileSync(path.join(own, name)).equals(whole)).toBe(true);
  expect(statSync(path.join(own, kept)).ino).toBe(ino);
});

test("a database with tables is refused with the setting that names it", async () => {
  const into = await run(world.settings, ["restore", backup]);
  expect(into.code).toBe(2);
  expect(into.err).toMatch(
    /1 mistake, nothing was read or stored\n {2}- DATABASE_URL: the database has \d+ tables, and a backup is restored into an empty database: name another one/,
  );
  const place = await emptyPlace();
  const { DATABASE_URL: _, ...embedded } = place;
  expect(await run(embedded, ["restore", backup])).toMatchObject({ code: 0 });
  const again = await run(embedded, ["restore", backup]);
  expect(again.code).toBe(2);
  expect(again.err).toMatch(/LONGWATCH_DATA_DIR: the embedded database in \S+ has \d+ tables/);
}, 60_000);

test("a backup whose archive lacks a file or has a damaged one fails, names the file and leaves no file", async () => {
  const names = readdirSync(world.folder, { recursive: true, encoding: "utf8" });
  const file = path.join(world.folder, names.find((name) => name.endsWith(".parquet")) ?? "");
  const whole = readFileSync(file);
  const out = nextFile();
  const elsewhere = { ...world.settings, LONGWATCH_ARCHIVE_DIR: makeTemporaryFolder("no-archive") };
  expect(await run(elsewhere, ["backup", "--out", out])).toMatchObject({
    code: 1,
    err: expect.stringMatching(
      /the archive's file \S+\.parquet in \S+ is not there: set LONGWATCH_ARCHIVE_DIR/,
    ),
  });
  writeFileSync(file, "x");
  const damaged = await run(world.settings, ["backup", "--out", out]);
  writeFileSync(file, whole);
  expect(damaged).toMatchObject({
    code: 1,
    err: expect.stringMatching(/\.parquet in \S+ has the hash \w+ instead of/),
  });
  expect(readdirSync(path.dirname(out))).toEqual([]);
});

test("mistakes of the command line are listed and nothing is done", async () => {
  const place = await emptyPlace();
  expect(await run(place, ["backup", "--bad"])).toMatchObject({
    code: 2,
    err: expect.stringMatching(
      /2 mistakes[^]*--out is missing; it must be a new file in a folder that exists/,
    ),
  });
  expect(await run(world.settings, ["backup", "--out", backup])).toMatchObject({
    code: 2,
    err: expect.stringContaining("must be a new file in a folder that exists"),
  });
  expect(await run(place, ["restore", "--old-database", "mysql://u:secret@h/x"])).toMatchObject({
    code: 2,
    err: expect.stringMatching(
      /2 mistakes[^]*the file of the backup is missing[^]*--old-database must be postgres:/,
    ),
  });
  const { DATABASE_URL: _, ...embedded } = place;
  expect(await run(embedded, ["restore", backup, "--old-database", "embedded"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("must be another database than the one to restore into"),
  });
  expect(await run(place, ["restore", "/no/such/file"])).toMatchObject({
    code: 1,
    err: expect.stringContaining("/no/such/file cannot be read: ENOENT"),
  });
});
