import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openBackfill } from "#db/proof/backfills.ts";
import { HOUR_MS } from "#lib/units.ts";
import { createMigratedDatabase } from "./migrated-database.ts";

const MIGRATION = path.join(import.meta.dirname, "../../migrations/0002_read_again_from_hours.sql");
const OLD_TABLE = `create table backfills (from_at timestamptz(3) not null, to_at timestamptz(3) not null,
  started_at timestamptz(3) not null, done_through timestamptz(3) not null, ended_at timestamptz(3),
  new_events bigint default 0 not null, zone_id integer not null, route text not null)`;

test("a backfill that an earlier version left unfinished goes on where it stopped, with its new events", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const { pool } = database;
  await pool.query(`${OLD_TABLE}; alter table coverage_windows drop column read_again`);
  const at = (hour: number, minute = 0) => Date.UTC(2026, 10, 20, hour, minute);
  for (const hour of [7, 8, 9, 10])
    await pool.query("insert into coverage_windows (zone_id, starts_at, stored_count) values (101, $1, 20)", [
      new Date(at(hour)),
    ]);
  const insert = `insert into backfills values ('2026-11-20T07:30Z', '2026-11-20T10:30Z', '2026-11-20T11:00Z', $1, $2, 5, $3, $4)`;
  await pool.query(insert, [new Date(at(9, 10)), null, 101, "search"]);
  await pool.query(insert, [new Date(at(10, 30)), new Date(at(11)), 102, "search"]);
  await pool.query(readFileSync(MIGRATION, "utf8").replaceAll("--> statement-breakpoint", ""));

  const key = { zoneId: 101, route: "search", from: at(7), to: at(10, 30) } as const;
  const opened = await openBackfill(database.db, key, { now: at(12), restart: false });
  expect(opened).toMatchObject({ at: at(11), doneThrough: at(9), endedAt: null, newEvents: 5 });
  expect(opened.left.map(({ startsAt }) => startsAt)).toEqual([at(9), at(9) + HOUR_MS]);
  const other = await openBackfill(database.db, { ...key, zoneId: 102 }, { now: at(12), restart: false });
  expect(other).toMatchObject({ at: at(12), newEvents: 0 });
});
