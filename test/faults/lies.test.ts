import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { NOW, oracle } from "../emulator/support.ts";
import { ROUTES, ROW_ROUTES } from "../support/liar/lie.ts";
import { sample, soakTest } from "../support/sample.ts";
import { readShown } from "./invariants.ts";
import { CALM_MS, type LyingWorld, openLyingWorld, ROUND_MS } from "./lying-world.ts";
import { ZONE } from "./replica.ts";

/** Returns the starts of the sealed hours for which the platform has events, whatever it shows now. */
async function readSealedEventful({ hours, emulator }: LyingWorld): Promise<number[]> {
  const shown = await readShown(emulator.url, ZONE);
  const eventful = new Set(shown.map(({ timestamp }) => timestamp - (timestamp % HOUR_MS)));
  return (await hours()).flatMap(({ at, state }) => (state === "sealed" && eventful.has(at) ? [at] : []));
}

/** Returns the starts of the hours that were sealed and reopened at least once. */
async function readReopened({ hours }: LyingWorld): Promise<number[]> {
  return (await hours()).flatMap(({ at, reopenedAt }) => (reopenedAt === null ? [] : [at]));
}

/** Returns the events that no row, list entry or grouped count has shown so far. */
async function readHidden({ emulator, liar }: LyingWorld) {
  const { testimonies } = liar.witness;
  return (await readShown(emulator.url, ZONE)).filter(({ logId }) => {
    const { shownAt = null, countedAt = null } = testimonies.get(logId) ?? {};
    return shownAt === null && countedAt === null;
  });
}

test("no hour with events is sealed while every route answers empty after the first start, and all of them afterwards", async () => {
  const world = await openLyingWorld();
  world.liar.tell({ kind: "empty", routes: ROUTES, ends: NOW + 350_000 });
  while (world.emulator.now() < NOW + 350_000) {
    await world.round(MINUTE_MS);
    expect(await readSealedEventful(world)).toEqual([]);
  }
  expect(await world.endLies()).toEqual([]);
});

soakTest(
  "a count of zero seals no hour that holds events, and rows that end early do not seal the hours behind them",
  async () => {
    const world = await openLyingWorld();
    world.liar.tell({ kind: "empty", routes: ROW_ROUTES, events: { from: NOW - 5 * HOUR_MS } });
    world.liar.tell({ kind: "empty", routes: ["counts"] });
    for (let round = 0; round < 6; round++) {
      await world.round(ROUND_MS);
      expect(await readSealedEventful(world)).toEqual([]);
    }
    expect(await world.endLies()).toEqual([]);
  },
);

const HIDING = [
  ["rows, list and counts", ["search", "list", "counts"], 0],
  ["every route", ROUTES, 4],
] as const;
test.each(sample(HIDING, ([name]) => name !== "every route"))(
  "hours that were sealed while %s hid the same events are reopened, repaired and sealed again",
  async (_name, routes, atLeast) => {
    const world = await openLyingWorld();
    const { emulator, liar } = world;
    liar.tell({ kind: "short", share: 0.1, salt: "hidden", routes, ends: NOW + 9 * MINUTE_MS });
    const sealed = new Set<number>();
    while (emulator.now() < NOW + 9 * MINUTE_MS) {
      await world.round(MINUTE_MS);
      for (const hour of await readSealedEventful(world)) sealed.add(hour);
    }
    const hidden = await readHidden(world);
    expect(hidden.length).toBeGreaterThan(20);
    const lacking = new Set(hidden.map(({ timestamp }) => timestamp - (timestamp % HOUR_MS)));
    const sealedInGoodFaith = [...sealed].filter((hour) => lacking.has(hour));
    // If every route agrees, no check can detect the lie. Such hours are sealed as quickly as true ones.
    expect(sealedInGoodFaith.length).toBeGreaterThanOrEqual(atLeast);
    expect(await world.endLies()).toEqual([]);
    const revised = new Set(await readReopened(world));
    expect(sealedInGoodFaith.filter((hour) => !revised.has(hour))).toEqual([]);
  },
);

soakTest(
  "a log id under two times is stored once and does not stand for an event that is hidden",
  async () => {
    const world = await openLyingWorld();
    world.liar.tell({ kind: "short", share: 0.02, salt: "hidden", routes: ROW_ROUTES });
    world.liar.tell({ kind: "rounded", share: 0.1, routes: ["list"] });
    await world.pass(4 * ROUND_MS, ROUND_MS);
    expect(world.liar.witness.falseTimes.size).toBeGreaterThan(50);
    expect(await world.endLies()).toEqual([]);
  },
);

test("events whose search page came empty are resolved before their hour is sealed", async () => {
  const world = await openLyingWorld({ pageSize: 400, historyHours: 5 });
  const { emulator } = world;
  emulator.addAttack("zone=101,rule=942100,start=-4h,duration=260s,rate=4/s");
  const { tally } = world.liar.tell({ kind: "emptyPage", routes: ["search"] });
  for (let round = 0; round < 4; round++) {
    await world.round(ROUND_MS);
    expect(await world.findUnresolvedSeals()).toEqual([]);
  }
  expect(tally.answers).toBeGreaterThan(0);
  expect(await world.endLies()).toEqual([]);
});

test("events that appear after the seal reopen their hour, which is sealed again with them", async () => {
  const world = await openLyingWorld();
  const { emulator } = world;
  await world.pass(HOUR_MS, ROUND_MS);
  const late = emulator.now() - 6 * HOUR_MS;
  const hour = late - (late % HOUR_MS);
  const stateOf = async () => (await world.hours()).find(({ at }) => at === hour);
  const before = await stateOf();
  expect(before?.state).toBe("sealed");
  emulator.addAttack("zone=101,rule=942100,start=-6h,duration=60s,rate=1/s");
  expect(await world.endLies()).toEqual([]);
  const after = await stateOf();
  expect(after?.stored).toBeGreaterThan((before?.stored ?? 0) + 50);
  expect(after?.reopenedAt).not.toBeNull();
});

soakTest(
  "a late event is found although search and counts have dropped an event of its rule and hour",
  async () => {
    const world = await openLyingWorld({ eventsPerSecond: 0.02, historyHours: 30 });
    const { emulator, liar } = world;
    const shown = await oracle(emulator, ZONE);
    const hourAgo = (hours: number) => NOW - (NOW % HOUR_MS) - hours * HOUR_MS;
    /** Two events of one rule, of an hour that so many hours ago began. */
    const pairOf = (hours: number) => {
      const inHour = shown.filter(({ timestamp }) => timestamp - (timestamp % HOUR_MS) === hourAgo(hours));
      const byRule = [...Map.groupBy(inHour, ({ ruleId }) => ruleId).values()];
      const pair = byRule.find(({ length }) => length > 1) ?? [];
      const [dropped, late] = pair.map(({ timestamp }) => ({ from: timestamp, to: timestamp + 1 }));
      if (dropped === undefined || late === undefined) throw new Error("no two events of one rule");
      return { dropped, late };
    };
    const drop = (events: { from: number; to: number }) =>
      liar.tell({ kind: "short", routes: ["search", "counts", "export", "metrics"], events });
    const delay = (events: { from: number; to: number }, ends: number) =>
      liar.tell({ kind: "short", routes: ROUTES, events, ends });
    const stateOf = async (hours: number) =>
      (await world.hours()).find(({ at }) => at === hourAgo(hours))?.state;
    // Of the first hour an event is dropped before the seal, of the others after. The list of yesterday is read no more.
    const [first, second, third] = [pairOf(24), pairOf(22), pairOf(6)];
    drop(first.dropped);
    delay(first.late, NOW + 4 * HOUR_MS);
    delay(second.late, NOW + 2 * HOUR_MS);
    await world.pass(90 * MINUTE_MS, ROUND_MS);
    expect([await stateOf(24), await stateOf(22), await stateOf(6)]).toEqual(["sealed", "sealed", "sealed"]);
    drop(second.dropped);
    drop(third.dropped);
    await world.round(ROUND_MS);
    expect([await stateOf(24), await stateOf(22), await stateOf(6)]).toEqual(["sealed", "open", "open"]);
    await world.pass(4.5 * HOUR_MS, 2 * ROUND_MS);
    const open = (await world.hours()).filter(
      ({ at, state }) => state !== "sealed" && at + 2 * HOUR_MS < emulator.now() && at > hourAgo(30),
    );
    expect(open).toEqual([]);
    const lateEvents = shown.filter(
      ({ timestamp }) => timestamp === first.late.from || timestamp === second.late.from,
    );
    const { rows } = await world.database.pool.query("select from waf_events where log_id = any($1)", [
      lateEvents.map(({ logId }) => logId),
    ]);
    expect(rows.length).toBe(lateEvents.length);
  },
);

const CONTRADICTIONS = [
  ["totals below the rows and buckets that do not add up", ["search", "counts"]],
  ["a list entry outside its day", ["list"]],
] as const;
test.each(sample(CONTRADICTIONS, ([, [route]]) => route === "list"))(
  "answers that contradict themselves prove nothing: %s",
  async (_name, routes) => {
    const world = await openLyingWorld();
    const { tally } = world.liar.tell({ kind: "contradictory", routes });
    for (let round = 0; round < 4; round++) {
      await world.round(ROUND_MS);
      expect(await readSealedEventful(world)).toEqual([]);
    }
    expect(tally.answers).toBeGreaterThan(5);
    expect(await world.endLies()).toEqual([]);
  },
);

test("metrics above every other route on every day reopen the days that are over, and a second full proof accepts and names them", async () => {
  const world = await openLyingWorld({ historyHours: 40, eventsPerSecond: 0.005 });
  const { database, liar } = world;
  const day = { from: Date.UTC(2026, 10, 19), to: Date.UTC(2026, 10, 20) };
  liar.tell({ kind: "doubled", share: 0.2, routes: ["metrics"] });
  await world.pass(CALM_MS, 2 * ROUND_MS);
  const ofDay = (await world.hours()).filter(({ at }) => at >= day.from && at < day.to);
  expect(ofDay.length).toBe(24);
  expect(ofDay.filter(({ state, reopenedAt }) => state !== "sealed" || reopenedAt === null)).toEqual([]);
  const { rows } = await database.pool.query<{
    history: { event: string; reason?: string }[];
    above: { day: string; platform: number; stored: number; fetchedAt: string }[];
  }>(
    `select evidence->'history' as history, evidence->'metricsAbove' as above from coverage_windows
     where starts_at >= '2026-11-19' and starts_at < '2026-11-20'`,
  );
  for (const { history, above } of rows) {
    expect(history.at(-1)?.reason).toMatch(
      /^The platform's metrics count \d+ events of rule \d+ on 2026-11-1\d, but \d+ are stored\.$/,
    );
    expect(above.length).toBeGreaterThan(0);
    for (const count of above) {
      expect(count.platform).toBeGreaterThan(count.stored);
      expect(count).toMatchObject({ day: "2026-11-19", fetchedAt: expect.stringMatching(/Z$/) });
    }
  }
});

test("hours are sealed although the list rounds times up, into the next hour", async () => {
  const world = await openLyingWorld({ historyHours: 4 });
  const { database, emulator, liar } = world;
  const border = NOW - 90 * MINUTE_MS;
  emulator.addAttack("zone=101,rule=942100,start=-5405s,duration=10s,rate=10/s");
  liar.tell({ kind: "shifted", shiftMs: 990, routes: ["list"] });
  await world.pass(5 * ROUND_MS, ROUND_MS);
  const { rows } = await database.pool.query<{ crossing: number }>(
    "select count(*)::integer as crossing from event_aliases where other_at >= $1 and kept_at < $1",
    [new Date(border)],
  );
  expect(rows[0]?.crossing).toBeGreaterThan(0);
  const states = (await world.hours()).filter(({ at }) => Math.abs(at - border) <= HOUR_MS && at <= border);
  expect(states.map(({ state }) => state)).toEqual(["sealed", "sealed"]);
});

const SETBACKS = [
  {
    name: "shows a fifth of the events under a false time",
    lie: { kind: "shifted", share: 0.2, shiftMs: -1_500 },
    lastsMs: 5 * MINUTE_MS,
    rounds: 5,
    roundMs: 2 * MINUTE_MS,
  },
  {
    name: "drops a fifth of the events that it has shown, for good",
    lie: { kind: "short", share: 0.2 },
    lastsMs: Number.POSITIVE_INFINITY,
    rounds: 9,
    roundMs: 10 * MINUTE_MS,
  },
] as const;
test.each(sample(SETBACKS, ({ lie }) => lie.kind === "short"))(
  "the search reaches the present again after it $name",
  async ({ lie, lastsMs, rounds, roundMs }) => {
    const world = await openLyingWorld({ eventsPerSecond: 0.1, historyHours: 1 });
    const { emulator, liar, database } = world;
    await world.round(MINUTE_MS);
    await world.round(MINUTE_MS);
    const begins = emulator.now();
    const events = { from: begins - 3 * MINUTE_MS, to: begins + 2 * MINUTE_MS };
    liar.tell({ ...lie, routes: ["search"], events, ends: begins + lastsMs });
    for (let round = 0; round < 5; round++) await world.round(MINUTE_MS);
    for (let round = 0; round < rounds; round++) await world.round(roundMs);
    const { rows } = await database.pool.query<{ late: number }>(
      "select $1::float8 - extract(epoch from max(searched_through)) * 1000 as late from coverage_windows",
      [emulator.now()],
    );
    expect(Number(rows[0]?.late)).toBeLessThan(roundMs + MINUTE_MS);
  },
);
