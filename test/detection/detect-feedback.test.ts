import { expect, test } from "vitest";
import { replayStore } from "#detection/exclusions/replay-store.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { END, eventsOf, minuteOf, openDetectWorld, START } from "./detect-support.ts";
import { ZONE } from "./trend-support.ts";

const { database, world } = await openDetectWorld();

const BURST = [20, 20, 20];
const DAY = 1_440;

/** A silent rule, an attack a day before the watch and the same one in it; the first is stored as the spike it was. */
async function keepTwoBursts(): Promise<void> {
  await world.keep([
    ...eventsOf([1], START - 2 * DAY, { logId: "first" }),
    ...eventsOf(BURST, START - DAY),
    ...eventsOf(BURST, START + 5),
  ]);
  await world.tickThrough(START - DAY - 1, START - DAY + 40);
  expect(await world.readSpikes()).toHaveLength(1);
}

const markAs = (mark: string) =>
  database.pool.query("update spikes set mark = $1, marked_at = now() where closed_at is not null", [mark]);

const openedInWatch = async () =>
  (await world.readSpikes())
    .map(({ openedAt }) => minuteOf(openedAt) ?? 0)
    .filter((minute) => minute > START);

test("after a confirmed attack the same burst is a spike again; unmarked, or marked as noise, it is none", async () => {
  await keepTwoBursts();
  await world.tickThrough(START, START + 12);
  expect(await openedInWatch()).toEqual([]);
  await markAs("noise");
  await world.tickThrough(START, START + 12);
  expect(await openedInWatch()).toEqual([]);
  await markAs("attack");
  await world.tickThrough(START, START + 12);
  expect(await openedInWatch()).toEqual([START + 6]);
});

test("a mark counts at the next tick of a detector that has its thresholds in memory", async () => {
  await keepTwoBursts();
  const detector = world.createDetector();
  await world.tickThrough(START, START + 8, detector);
  expect(await openedInWatch()).toEqual([]);
  await markAs("attack");
  await world.tickThrough(START + 8, START + 9, detector);
  expect(await openedInWatch()).toEqual([START + 6]);
});

test("a replay of the stored history uses the marks as well", async () => {
  await keepTwoBursts();
  await world.showMinutes(END * MINUTE_MS);
  const asked = { zoneId: ZONE, ruleId: undefined, days: 3, nowMs: END * MINUTE_MS };
  const replay = () => replayStore(database.db, asked, [{ z: 3.5, floor: 10 }]);
  expect((await replay())[0].alerts).toHaveLength(1);
  await markAs("attack");
  const [{ alerts }] = await replay();
  expect(alerts.map(({ fromMinute }) => fromMinute)).toEqual([START - DAY, START + 5]);
});

test("a rule without a history is judged by what the platform counted before, and is not called new", async () => {
  const everyday = Array.from({ length: 40 }, () => 4);
  await world.keep([
    ...eventsOf(everyday, START, { ruleId: "941100" }),
    ...eventsOf(everyday, START, { ruleId: "942100" }),
    ...eventsOf([...everyday.slice(0, 20), 400], START, { ruleId: "943100" }),
  ]);
  await database.pool.query(
    `insert into rule_metrics (zone_id, rule_id, day, total)
     select $1, rule, date '2026-11-11' - n, 5760 from generate_series(1, 14) as n, unnest(array['941100', '943100']) as rule`,
    [ZONE],
  );
  await world.tickThrough(START, START + 30);
  const found = await world.readSpikes();
  expect(found.map(({ ruleId, kind }) => [ruleId, kind])).toEqual([
    ["942100", expect.any(String)],
    ["943100", "spike"],
  ]);
  expect(minuteOf(found[0]?.openedAt ?? null)).toBe(START + 3);
  expect(minuteOf(found[1]?.openedAt ?? null)).toBe(START + 21);
});

test("a floor is a rule's own: above it a burst is a spike, below it never", async () => {
  for (const ruleId of ["941100", "942100", "943100"])
    await world.keep(eventsOf([4, 4], START + 5, { ruleId }));
  const floors = new Map([
    ["941100", 5],
    ["942100", 9],
  ]);
  const sensitivity = (_zone: number, ruleId: string) => ({ z: 3.5, floor: floors.get(ruleId) ?? 10 });
  const detector = world.createDetector({ sensitivity, lowestFloor: () => 5 });
  await world.tickThrough(START, START + 10, detector);
  expect((await world.readSpikes()).map(({ ruleId }) => ruleId)).toEqual(["941100"]);
});
