import { readFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, expect, test } from "vitest";
import { readStatement, statementPath } from "#archive/rules/files/day-statement.ts";
import { archiveCommand } from "#faces/cli/archive/archive.ts";
import { exportCommand } from "#faces/cli/export/export.ts";
import { runStoreCommand } from "../../faces/cli/run-store-command.ts";
import { environment } from "../../people/erasure-world.ts";
import {
  DAY,
  hostileEvents,
  inFileOrder,
  NOW,
  openArchiveWorld,
  readEventsFile,
  readRecordsFile,
  recordOf,
} from "./archive-world.ts";

/** The copy of a day for a third party before the day is archived. */

const world = await openArchiveWorld();
const EVENTS = hostileEvents();

beforeAll(async () => {
  await world.store(EVENTS);
});

const run = (command: typeof archiveCommand, args: string[]) =>
  runStoreCommand(command, { ...environment(world.database), LONGWATCH_ARCHIVE_DIR: world.folder }, args, {
    now: NOW,
  });

test("a day that is not archived is exported from Postgres, and the copy says what is proven", async () => {
  await world.database.pool.query(
    "update coverage_windows set state = 'open', sealed_at = null where zone_id = 101 and extract(hour from starts_at at time zone 'UTC') = 23",
  );
  const target = path.join(world.folder, "handed-over");
  const span = ["--zone", "101", "--from", DAY, "--to", "2026-11-19"];

  const ran = await run(exportCommand, [...span, "--format", "parquet", "--out", target]);

  expect(ran).toMatchObject({ code: 0 });
  const said =
    /2026-11-18 of zone 101 was copied at 2026-11-2\S+, before it was archived, and may still change\. 23 of 24 hours are proven; not proven, so events may be missing: 23 \(open\)/;
  expect(ran.err).toMatch(said);
  const statement = readStatement(readFileSync(path.join(target, statementPath(101, DAY)), "utf8"));
  expect(statement?.provisional).toMatchObject({
    proven: Array.from({ length: 23 }, (_, hour) => hour),
    unproven: [{ hour: 23, state: "open" }],
  });
  const fileOf = (kind: string) =>
    path.join(target, statement?.files.find((file) => file.kind === kind)?.path ?? "");
  const sorted = inFileOrder(EVENTS);
  expect(await readEventsFile(world, fileOf("events"))).toEqual(sorted);
  expect(await readRecordsFile(world, fileOf("records"))).toEqual(sorted.map(recordOf));
  const verified = await run(archiveCommand, ["verify", "--offline", target]);
  expect(verified.out).toContain("nothing differs");
  expect(verified.out).toMatch(said);
  // Nothing was entered into the archive.
  expect((await world.database.pool.query("select from archive_files")).rowCount).toBe(0);
});
