import { expect, test } from "vitest";
import { createAfterRollUp } from "#jobs/detection/after-roll-up.ts";

const MINUTE = 60_000;
const NOON = Date.UTC(2026, 10, 20, 12);

function open() {
  let now = NOON;
  const nudges: string[] = [];
  const afterRollUp = createAfterRollUp(() => now, {
    soon: () => void nudges.push("soon"),
    later: () => void nudges.push("later"),
  });
  /** How the detector was enqueued by a roll-up of these minutes, counted from noon, `seconds` after noon. */
  return (seconds: number, oldest: number, newest = oldest, zoneId = 101) => {
    now = NOON + seconds * 1_000;
    afterRollUp(zoneId, { oldestMs: NOON + oldest * MINUTE, newestMs: NOON + newest * MINUTE });
    return nudges.splice(0).join();
  };
}

test("counts of the open minute enqueue the detector once, counts of a closed minute always, but later", () => {
  const rollUp = open();
  expect([rollUp(1, 0), rollUp(6, 0), rollUp(11, 0)]).toEqual(["soon", "", ""]);
  expect([rollUp(16, -1, 0), rollUp(21, -1), rollUp(26, 0)]).toEqual(["later", "later", ""]);
});

test("the first roll-up of a minute enqueues the detector, whatever it counts: the minute before is closed", () => {
  const rollUp = open();
  rollUp(55, 0);
  expect([rollUp(61, 1), rollUp(66, 1)]).toEqual(["soon", ""]);
});

test("a roll-up that ran at the turn of the minute does not hide the first events of the new one", () => {
  const rollUp = open();
  rollUp(55, 0);
  // Of a search that had ended just before the turn.
  expect(rollUp(60.5, 0)).toBe("soon");
  expect([rollUp(65, 1), rollUp(70, 1)]).toEqual(["soon", ""]);
});

test("each zone is looked at by itself", () => {
  const rollUp = open();
  expect([rollUp(1, 0, 0, 101), rollUp(1, 0, 0, 102), rollUp(6, 0, 0, 101), rollUp(6, 0, 0, 102)]).toEqual([
    "soon",
    "soon",
    "",
    "",
  ]);
});
