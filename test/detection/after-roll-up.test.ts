import { afterAll, beforeAll, expect, test } from "vitest";
import { noteRising } from "#db/proof/platform-health.ts";
import { platformHealth } from "#db/schema/coverage.ts";
import { createAfterRollUp } from "#jobs/detection/roll-up-trends.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";

const MINUTE = 60_000;
const NOON = Date.UTC(2026, 10, 20, 12);
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});

afterAll(() => database.drop());

function open() {
  let now = NOON;
  const nudges: string[] = [];
  const afterRollUp = createAfterRollUp(
    { clock: () => now, database },
    {
      soon: () => void nudges.push("soon"),
      judgeNow: () => void nudges.push("judgeNow"),
      later: () => void nudges.push("later"),
    },
  );
  /** How the detector was enqueued by a roll-up of these minutes, counted from noon, `seconds` after noon. */
  return async (seconds: number, oldest: number, newest = oldest, zoneId = 101) => {
    now = NOON + seconds * 1_000;
    await afterRollUp(zoneId, { oldestMs: NOON + oldest * MINUTE, newestMs: NOON + newest * MINUTE });
    return nudges.splice(0).join();
  };
}

test("counts of the running minute are judged at once, counts of a closed minute enqueue the detectors later", async () => {
  const rollUp = open();
  expect([await rollUp(1, 0), await rollUp(6, 0), await rollUp(11, 0)]).toEqual([
    "soon",
    "judgeNow",
    "judgeNow",
  ]);
  const late = [await rollUp(16, -1, 0), await rollUp(21, -1), await rollUp(26, 0)];
  expect(late).toEqual(["later", "later", "judgeNow"]);
});

test("the first roll-up of a minute enqueues the detectors, whatever it counts: the minute before is closed", async () => {
  const rollUp = open();
  await rollUp(55, 0);
  expect([await rollUp(61, 1), await rollUp(66, 1)]).toEqual(["soon", "judgeNow"]);
});

test("a roll-up that ran at the turn of the minute does not hide the first events of the new one", async () => {
  const rollUp = open();
  await rollUp(55, 0);
  // Of a search that had ended just before the turn.
  expect(await rollUp(60.5, 0)).toBe("soon");
  expect([await rollUp(65, 1), await rollUp(70, 1)]).toEqual(["soon", "judgeNow"]);
});

test("each zone is looked at by itself", async () => {
  const rollUp = open();
  expect([await rollUp(1, 0, 0, 101), await rollUp(1, 0, 0, 102)]).toEqual(["soon", "soon"]);
  expect([await rollUp(6, 0, 0, 101), await rollUp(6, 0, 0, 102)]).toEqual(["judgeNow", "judgeNow"]);
});

test("in a zone in which something rises, the detectors follow every roll-up, until it no longer rises", async () => {
  await database.db.insert(platformHealth).values({ zoneId: 103, watchedSince: new Date(NOON) });
  const rollUp = open();
  await rollUp(1, 0, 0, 103);
  await noteRising(database.db, [103], NOON + 2_000);
  expect([await rollUp(6, 0, 0, 103), await rollUp(11, -1, 0, 103)]).toEqual(["soon", "soon"]);
  expect([await rollUp(16, 0, 0, 102), await rollUp(21, 0, 0, 102)]).toEqual(["soon", "judgeNow"]);
  expect([await rollUp(109, 1, 1, 103), await rollUp(119, 1, 1, 103)]).toEqual(["soon", "judgeNow"]);
});
