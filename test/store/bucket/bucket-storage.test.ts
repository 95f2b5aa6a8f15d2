import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import type { NamedFile } from "#model/archive-storage.ts";
import { createBucketStorage } from "#store/bucket/bucket-storage.ts";
import { shareS3Server } from "../../support/s3-server.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";

const server = await shareS3Server();
let lastPrefix = 0;

const SIZE = 1_000;

/** Two replicas with caches of their own for three files, and files in the bucket that neither has. */
async function openReplicas(count: number, notUploaded: string[] = []) {
  const bucket = server.bucket(`prefix-${++lastPrefix}`);
  const open = () => {
    const folder = makeTemporaryFolder("cache");
    const listNotUploaded = async () => new Set(notUploaded);
    return createBucketStorage({ bucket, folder, cacheBytes: 3 * SIZE, listNotUploaded });
  };
  const writer = createBucketStorage({
    bucket,
    folder: makeTemporaryFolder("writer"),
    cacheBytes: 1e9,
    listNotUploaded: async () => new Set(),
  });
  const files: NamedFile[] = [];
  for (let index = 0; index < count; index++) {
    const content = Buffer.alloc(SIZE, `${lastPrefix}-${index};`);
    const sha256 = createHash("sha256").update(content).digest("hex");
    const file = {
      path: `events/zone=101/day=2026-11-${10 + index}/${sha256.slice(0, 16)}.parquet`,
      sha256,
      bytes: SIZE,
    };
    const local = path.join(makeTemporaryFolder("written"), "file");
    writeFileSync(local, content);
    await writer.put(local, file.path, file);
    files.push(file);
  }
  const isCached = (folder: string) => files.map((file) => existsSync(path.join(folder, file.path)));
  return { one: open(), other: open(), bucket, files, isCached };
}

test("a file is fetched once for all who want it at the same time, and from the folder afterwards", async () => {
  const {
    one,
    files: [file],
  } = await openReplicas(1);
  if (file === undefined) throw new Error("no file");
  server.requests.length = 0;

  expect(await Promise.all([one.bring(file), one.bring(file), one.bring(file)])).toEqual([null, null, null]);
  expect(await one.bring(file)).toBeNull();

  expect(server.requests.filter((request) => request.startsWith("GET"))).toHaveLength(1);
  expect(readFileSync(path.join(one.folder, file.path))).toHaveLength(SIZE);
});

test("the cache keeps the files that were used last, never those that are in use, and has no more bytes than it may", async () => {
  const { one, files, isCached } = await openReplicas(6);
  const [first, second, third, fourth, fifth, sixth] = files as [
    NamedFile,
    NamedFile,
    NamedFile,
    NamedFile,
    NamedFile,
    NamedFile,
  ];
  const use = (file: NamedFile, at: number) => utimesSync(path.join(one.folder, file.path), at, at);
  const release = one.hold([first]);
  for (const [index, file] of [first, second, third].entries()) {
    await one.bring(file);
    use(file, index + 1);
  }
  const stamp = await one.touch(second);
  expect([stamp, await one.touch(second)]).toEqual([expect.any(String), stamp]);

  await one.bring(fourth);
  expect(isCached(one.folder)).toEqual([true, true, false, true, false, false]);
  expect(await one.touch(third)).toBeNull();
  release();
  use(fourth, 6);
  for (const file of [fifth, sixth]) await one.bring(file);

  expect(isCached(one.folder)).toEqual([false, true, false, false, true, true]);
});

test("a search that needs more files at once than the cache may have is refused, and says what to raise", async () => {
  const { one, files } = await openReplicas(4);

  expect(() => one.hold(files)).toThrow(/more than the cache of .*raise LONGWATCH_ARCHIVE_CACHE_GB/);
  one.hold(files.slice(1))();
});

test("a file that is not in the bucket yet stays in the folder, however full it is", async () => {
  const only = "events/zone=101/day=2026-11-01/0123456789abcdef.parquet";
  const { one, files, isCached } = await openReplicas(2, [only]);
  mkdirSync(path.dirname(path.join(one.folder, only)), { recursive: true });
  writeFileSync(path.join(one.folder, only), Buffer.alloc(3 * SIZE));
  utimesSync(path.join(one.folder, only), 1, 1);

  for (const file of files) await one.bring(file);

  expect(existsSync(path.join(one.folder, only))).toBe(true);
  expect(isCached(one.folder).filter(Boolean).length).toBeLessThan(2);
});

test("a replica removes files from its cache that another one has removed for good", async () => {
  const { one, other, files, isCached } = await openReplicas(2);
  for (const file of files) for (const storage of [one, other]) await storage.bring(file);
  const [kept, erased] = files as [NamedFile, NamedFile];
  for (const file of files) utimesSync(path.join(other.folder, file.path), 1, 1);

  await one.remove(erased.path);
  await other.forget(async (names) => new Set(names.filter((name) => name === kept.path)));

  for (const { folder } of [one, other]) expect(isCached(folder)).toEqual([true, false]);
  expect(await other.bring(erased)).toBe("is missing");
});

const spoil = ({ folder }: { folder: string }, file: NamedFile) =>
  writeFileSync(path.join(folder, file.path), "spoiled");

test("a cached file that is damaged is fetched again", async () => {
  const {
    one,
    files: [file],
  } = await openReplicas(1);
  if (file === undefined) throw new Error("no file");
  await one.bring(file);
  spoil(one, file);

  expect(await one.bring(file)).toBeNull();
  expect(readFileSync(path.join(one.folder, file.path))).toHaveLength(SIZE);
});

test.each([
  ["keeps checksums", true],
  ["keeps no checksums", false],
])(
  "an object that is damaged, cut or gone in a bucket that %s is reported, and never kept in the folder",
  async (_, keepsChecksums) => {
    const { one, bucket, files, isCached } = await openReplicas(4);
    server.keepsChecksums = keepsChecksums;
    const [whole, other, short, gone] = files as [NamedFile, NamedFile, NamedFile, NamedFile];
    const replace = (file: NamedFile, text: string) =>
      bucket.put(
        file.path,
        { text, bytes: text.length, sha256: createHash("sha256").update(text).digest("hex") },
        { isNew: false },
      );
    await replace(other, "x".repeat(SIZE));
    await replace(short, "x");
    await bucket.remove(gone.path);
    const expected = [
      null,
      expect.stringContaining("has another SHA-256"),
      `has 1 bytes instead of ${SIZE}`,
      "is missing",
    ];

    const target = makeTemporaryFolder("copies");
    for (const [index, file] of [whole, other, short, gone].entries()) {
      expect(await one.check(file)).toEqual(expected[index]);
      expect(await one.bring(file)).toEqual(expected[index]);
      expect(await one.copy(file, path.join(target, String(index)))).toEqual(expected[index]);
    }
    expect(isCached(one.folder)).toEqual([true, false, false, false]);
  },
);

test("a file whose transfer is cut is not kept, and the next attempt gets it", async () => {
  const {
    one,
    files: [file],
    isCached,
  } = await openReplicas(1);
  if (file === undefined) throw new Error("no file");
  server.refuse = () => "cut";

  await expect(one.bring(file)).rejects.toThrow(/cannot be copied/);

  expect(isCached(one.folder)).toEqual([false]);
  server.refuse = () => null;
  expect(await one.bring(file)).toBeNull();
});

test("an object that was stored before with the same content is taken, one with other content is refused", async () => {
  const {
    one,
    bucket,
    files: [file],
  } = await openReplicas(1);
  if (file === undefined) throw new Error("no file");
  const local = () => {
    const name = path.join(makeTemporaryFolder("again"), "file");
    writeFileSync(name, Buffer.alloc(SIZE, `${lastPrefix}-0;`));
    return name;
  };

  await one.put(local(), file.path, file);
  await bucket.put(
    file.path,
    { text: "x", bytes: 1, sha256: createHash("sha256").update("x").digest("hex") },
    { isNew: false },
  );
  await expect(one.put(local(), file.path, file)).rejects.toThrow(
    /has an object events\/\S+ with other content; remove it/,
  );
});
