import { readdirSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { mountSmallDisk } from "../support/small-disk.ts";
import { openBackupWorld, run } from "./backup-world.ts";

const disk = mountSmallDisk(1);
const why = disk === null ? " (skipped: no small disk can be mounted)" : "";

test.skipIf(disk === null)(`a backup that does not fit names the disk and leaves no file${why}`, async () => {
  onTestFinished(() => disk?.remove());
  const folder = disk?.folder ?? "";
  const world = await openBackupWorld();
  await world.database.pool.query(
    "insert into quarantined_entries (zone_id, route, reason, raw) select 1, 'list', 'r', sha256(n::text::bytea) from generate_series(1, 40000) n",
  );
  const { code, err } = await run(world.settings, ["backup", "--out", path.join(folder, "backup.tar")]);
  expect(code).toBe(1);
  expect(err).toMatch(
    /longwatch backup: the backup does not fit: the disk of \S+ \(mounted at \S+\) has 0 kB of .* free\. Free space, or write to another disk\n$/,
  );
  expect(readdirSync(folder)).toEqual([]);
});
