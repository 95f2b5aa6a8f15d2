import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { platformHealth } from "#db/schema/coverage.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { END, minuteOf, openDetectWorld } from "./detect-support.ts";
import { makeEvent, ZONE } from "./trend-support.ts";

const ATTACK = END - 90;
const OTHER = ZONE + 1;

const { database, world } = await openDetectWorld();

/** Two days of visitors, each with an address of its own. */
const visitors = Array.from({ length: 2 * 144 }, (_, i) =>
  makeEvent({
    occurredAt: (ATTACK - 2 * 1_440 + 10 * i) * MINUTE_MS + 1_000,
    logId: `visitor/${i}`,
    ip: `10.${i >> 8}.${i & 255}.1`,
    ruleId: `94${i % 4}100`,
    url: `https://shop.example/page/${i % 13}`,
  }),
);

/** One address that tries twenty rules on twenty paths within the first seconds of a minute. */
const scanOf = (minute: number): WafEvent[] =>
  Array.from({ length: 20 }, (_, i) =>
    makeEvent({
      occurredAt: minute * MINUTE_MS + 1_000 + i * 100,
      logId: `scan/${minute}/${i}`,
      ip: "198.51.100.7",
      ruleId: `9${100 + i}`,
      url: `https://shop.example/try/${i}`,
    }),
  );

async function readOpened() {
  return (await world.readSpikes()).map(({ zoneId, openedAt }) => [zoneId, openedAt.getTime()]);
}

/** Has the searches of a zone reached a time. */
async function searchThrough(ms: number, zoneId = ZONE) {
  await database.pool.query(
    `update coverage_windows set searched_through = $2
     where zone_id = $1 and starts_at = date_trunc('hour', $2::timestamptz)`,
    [zoneId, new Date(ms)],
  );
}

test("a scanner in a zone at rest is named while its first minute runs", async () => {
  await world.keep([...visitors, ...scanOf(ATTACK)]);
  const ticks = world.createSourceDetector();
  await world.tickThrough(ATTACK - 3, ATTACK - 1, ticks);
  const during = ATTACK * MINUTE_MS + 15_000;
  await world.tickAt(during, ticks);
  expect(await readOpened()).toEqual([[ZONE, during]]);
});

test("a run without new events is one statement, and says so", async () => {
  await world.keep([...visitors, ...scanOf(ATTACK + 5)]);
  const ticks = world.createSourceDetector();
  await world.tickThrough(ATTACK - 3, ATTACK, ticks);
  const query = vi.spyOn(pg.Client.prototype, "query");
  onTestFinished(() => query.mockRestore());
  const judgements: unknown[] = [];
  const run = async () => {
    query.mockClear();
    judgements.push([await ticks(), query.mock.calls.length]);
  };
  const seconds = [10, 20, 30];
  for (const second of seconds) await world.tickAt(ATTACK * MINUTE_MS + second * 1_000, run);
  expect(judgements).toEqual(seconds.map(() => ["no zone has new events in this minute", 1]));
});

test("a zone whose search passes the end of a minute late is judged then, not a minute later", async () => {
  await world.keep([...visitors, ...scanOf(ATTACK)]);
  await world.keep([...visitors, ...scanOf(ATTACK)], { zoneId: OTHER });
  const ticks = world.createSourceDetector(undefined, undefined, undefined, [ZONE, OTHER]);
  await world.tickThrough(ATTACK - 3, ATTACK - 1, ticks);
  await searchThrough((ATTACK + 1) * MINUTE_MS - 5_000, OTHER);
  // Nobody judges while the minute runs.
  await world.tickThrough(ATTACK, ATTACK + 1, ticks);
  const opened = async () => (await readOpened()).map(([zoneId]) => zoneId);
  expect(await opened()).toEqual([ZONE]);
  await searchThrough((ATTACK + 1) * MINUTE_MS + 5_000, OTHER);
  await world.tickAt((ATTACK + 1) * MINUTE_MS + 7_000, ticks);
  expect(await opened()).toEqual([ZONE, OTHER]);
  const [, late] = await world.readSpikes();
  expect(minuteOf(late?.judgedThrough ?? null)).toBe(ATTACK + 1);
});

test("a zone that comes halfway to its line while a minute runs rises at once", async () => {
  await database.db.insert(platformHealth).values({ zoneId: ZONE, watchedSince: new Date() });
  await world.keep([...visitors, ...scanOf(ATTACK).slice(0, 8)]);
  const ticks = world.createSourceDetector();
  await world.tickThrough(ATTACK - 3, ATTACK - 1, ticks);
  const during = ATTACK * MINUTE_MS + 15_000;
  await world.tickAt(during, ticks);
  const rows = await database.db.select({ until: platformHealth.risingUntil }).from(platformHealth);
  expect(rows).toEqual([{ until: new Date(during + MINUTE_MS) }]);
  expect(await world.readSpikes()).toEqual([]);
});
