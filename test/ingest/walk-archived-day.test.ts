import { expect, test } from "vitest";
import { HOUR_MS } from "#lib/units.ts";
import { NOW, openEmulator } from "../emulator/support.ts";
import { openChangingPlatform, openIngest, storedRows } from "./ingest-support.ts";

test("the list of an archive day is not read, so that its entries are not quarantined", async () => {
  const emulator = await openEmulator({
    zones: [101],
    eventsPerSecond: 0.01,
    historyHours: 30,
    lateShare: 0,
  });
  const asked: string[] = [];
  const url = await openChangingPlatform(emulator, (body, path) => {
    asked.push(path);
    return body;
  });
  const ingest = await openIngest(emulator, { url });
  const { pool } = ingest.database;
  await pool.query(
    `insert into archive_files (zone_id, day, kind, path, sha256, bytes, rows, hours, sum, format, first_at, last_at)
     values (101, '2026-11-19', 'events', 'x', repeat('0', 64), 1, 1, array_fill(0, array[24]), 1, 1, $1, $1)`,
    [new Date(NOW - 20 * HOUR_MS)],
  );

  await ingest.walk();

  expect(asked.filter((path) => path.includes("/11-19-2026"))).toEqual([]);
  expect((await pool.query("select from quarantined_entries")).rowCount).toBe(0);
  expect((await storedRows(ingest.database)).length).toBeGreaterThan(100);
});
