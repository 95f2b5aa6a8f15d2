import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, expect, type TestContext, test } from "vitest";
import { startEmbeddedPostgres } from "#store/embedded/postgres.ts";
import { describePostgresFailure } from "#store/embedded/postgres-error.ts";
import { startServiceProcess } from "../../faults/service-process.ts";
import { mountSmallDisk, type SmallDisk } from "../../support/small-disk.ts";

let disk: SmallDisk | null;

beforeEach(() => {
  disk = mountSmallDisk(100);
});
afterEach(() => disk?.remove());

function use(context: TestContext): SmallDisk {
  if (disk === null) context.skip("this user may not mount a disk");
  return disk;
}

test("a start on a disk without room names disk, folder and the space needed, leaves nothing half-made, and works once there is room", async (context) => {
  const small = use(context);
  const dataDir = path.join(small.folder, "longwatch");

  await expect(startEmbeddedPostgres({ dataDir })).rejects.toThrow(
    new RegExp(
      `Not enough disk space .* the disk of ${dataDir}/postgres \\(mounted at ${small.folder}\\) has \\d+ MB of 104 MB free\\. .* at least 200 MB .* LONGWATCH_DATA_DIR`,
    ),
  );

  expect(readdirSync(dataDir)).toEqual([]);
  // A start on a disk that is full to the last byte leaves an empty password file.
  const passwordFile = path.join(dataDir, "postgres-password");
  writeFileSync(passwordFile, "");
  small.enlarge(400);
  await (await startEmbeddedPostgres({ dataDir })).stop();
  expect(readFileSync(passwordFile, "utf8")).toMatch(/^[0-9a-f]{48}$/);

  // The cluster exists now.
  small.fill();
  const failure = await startEmbeddedPostgres({ dataDir }).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(describePostgresFailure(failure)).toMatch(
    /^Not enough disk space .*\(mounted at .*\) has 0 kB of 419 MB free\. It needs at least 50 MB/,
  );
  rmSync(`${small.folder}/fill`);
  await (await startEmbeddedPostgres({ dataDir })).stop();
});

test("`start` on a full disk ends with one line about the disk and no word about DATABASE_URL", async (context) => {
  const small = use(context);
  const dataDir = path.join(small.folder, "longwatch");
  const service = startServiceProcess({ LONGWATCH_DATA_DIR: dataDir });

  expect(await service.exited).toBe(1);

  expect(service.printed()).toMatch(
    /longwatch: Not enough disk space for the embedded Postgres: the disk of /,
  );
  expect(service.printed()).not.toMatch(/DATABASE_URL|ECONNREFUSED|"level":"error"/);
  expect(existsSync(path.join(dataDir, "runtime.json"))).toBe(false);
});
