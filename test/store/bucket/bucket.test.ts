import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { StorageError } from "#model/archive-storage.ts";
import { shareS3Server, startS3Server } from "../../support/s3-server.ts";

const server = await shareS3Server();

const KEY = "events/zone=101/day=2026-11-18/a b+c%.parquet";
const contentOf = (content: string) => ({
  text: content,
  bytes: Buffer.byteLength(content),
  sha256: createHash("sha256").update(content).digest("hex"),
});

test("an object is stored once, read, listed, described and removed under its prefix", async () => {
  const bucket = server.bucket("one/deep");
  const first = contentOf("first");

  expect(await bucket.put(KEY, first, { isNew: true })).toBe(true);
  expect(await bucket.put(KEY, contentOf("second"), { isNew: true })).toBe(false);

  expect(await text((await bucket.get(KEY)) ?? Readable.from([]))).toBe("first");
  expect(await bucket.head(KEY)).toEqual({ bytes: 5, sha256: first.sha256 });
  server.keepsChecksums = false;
  expect(await bucket.head(KEY)).toEqual({ bytes: 5, sha256: null });
  expect(await bucket.list("events")).toEqual([
    { path: KEY, bytes: 5, modifiedAt: expect.closeTo(Date.now(), -5) },
  ]);
  expect(await server.bucket("one").list("events")).toEqual([]);
  expect(await bucket.put(KEY, contentOf("second"), { isNew: false })).toBe(true);
  await bucket.remove(KEY);
  await bucket.remove(KEY);
  expect([await bucket.get(KEY), await bucket.head(KEY), await bucket.list("events")]).toEqual([
    null,
    null,
    [],
  ]);
});

test("a list of more than a page has every object once", async () => {
  const bucket = server.bucket("many");
  const names = Array.from({ length: 1_005 }, (_, index) => `records/${index}`);
  const folder = path.join(server.folder, "many/records");
  mkdirSync(folder, { recursive: true });
  for (const name of names) writeFileSync(path.join(folder, `${path.basename(name)}._S3rver_object`), "");

  const listed = (await bucket.list("records")).map(({ path }) => path);

  expect([listed.length, new Set(listed)]).toEqual([1_005, new Set(names)]);
});

test("a body that does not have its hash is refused and not stored", async () => {
  const bucket = server.bucket("torn");
  const put = bucket.put(KEY, { ...contentOf("first"), sha256: contentOf("other").sha256 }, { isNew: true });

  await expect(put).rejects.toThrow("refused PUT with 400 BadDigest");
  expect(await bucket.head(KEY)).toBeNull();
});

test.each([
  [
    "a wrong secret",
    () => server.bucket("", { secret: "wrong" }),
    /refused GET with 403 SignatureDoesNotMatch; check AWS_ACCESS_KEY_ID/,
  ],
  [
    "a bucket that does not exist",
    () => server.bucket("", { name: "nowhere" }),
    /s3:\/\/nowhere refused GET with 404 NoSuchBucket; create the bucket, or correct LONGWATCH_ARCHIVE_URL/,
  ],
])("%s is named with what to do", async (_, open, said) => {
  await expect(open().list("events")).rejects.toThrow(said);
  await expect(open().get(KEY)).rejects.toThrow(said);
});

test.each([
  ["GET", "s3:GetObject", () => server.bucket("").get(KEY)],
  ["PUT", "s3:PutObject", () => server.bucket("").put(KEY, contentOf("x"), { isNew: true })],
  ["DELETE", "s3:DeleteObject", () => server.bucket("").remove(KEY)],
  ["GET", "s3:ListBucket", () => server.bucket("").list("events")],
])("a key without a right for %s is named with the right %s", async (method, right, call) => {
  server.refuse = (request) => (request.method === method ? 403 : null);

  await expect(call()).rejects.toThrow(
    new RegExp(`refused ${method} with 403 AccessDenied; .* may do .*${right}`),
  );
});

test("a busy server is asked again, and a server that stays away is named", async () => {
  const bucket = server.bucket("busy");
  let answers = [503, 500];
  server.refuse = () => answers.shift() ?? null;
  expect(await bucket.put(KEY, contentOf("x"), { isNew: true })).toBe(true);

  answers = [503, 503, 503];
  await expect(bucket.get(KEY)).rejects.toThrow(StorageError);
  const gone = await startS3Server();
  const away = gone.bucket("");
  await gone.close();
  await expect(away.get(KEY)).rejects.toThrow(
    /the bucket s3:\/\/waf-archive cannot be reached at http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/,
  );
});
