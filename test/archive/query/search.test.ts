import { afterAll, beforeAll, expect, test } from "vitest";
import { ensurePartitions } from "../../../db/postgres/partitions.ts";
import { MOST_ONE_BY_ONE } from "../../../db/search/search-one-by-one.ts";
import { createBuildCubesJob } from "../../../jobs/archive/build-cubes.ts";
import { createCloseDaysJob } from "../../../jobs/archive/close-days.ts";
import { DAY_MS } from "../../../src/lib/units.ts";
import type { WafEvent } from "../../../src/model/waf-event.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { createFractions } from "../../detection/support/histories.ts";
import { silent } from "../../ingest/ingest-support.ts";
import { COUNTED, createDraw, DAYS, drawBody, drawCountedBody, drawEvents, END, FIRST_DAY } from "./draw.ts";
import { createNaiveSearch } from "./naive-search.ts";
import { expectSame, ZONE } from "./world.ts";

const AT_ONCE = 6;
const draw = createDraw(createFractions(20_260_301));
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
  await ensurePartitions(database, DAYS);
  await storeEvents(database, ZONE + 1, drawEvents(draw, 300, "other-"), { expectNew: true });
});

afterAll(() => database.drop());

async function runJob(job: ReturnType<typeof createBuildCubesJob>): Promise<void> {
  await job.run({} as never, new AbortController().signal);
}

const closeDays = (now: number) => runJob(createCloseDaysJob({ database, clock: () => now, log: silent }));
const buildCubes = () => runJob(createBuildCubesJob({ database, log: silent }));

/** Of whole days that are closed and stay as they were closed: by one dimension, by two, and by one of which another is asked. */
const SETTLED = COUNTED.flatMap((field, index) => {
  const other = COUNTED[(index + 1) % COUNTED.length] ?? field;
  const days = { from: FIRST_DAY + 2 * DAY_MS, to: FIRST_DAY + 4 * DAY_MS, pageSize: 500 };
  return [
    { ...days, groupBy: [field] },
    { ...days, groupBy: [other, field], buckets: 24 },
    { ...days, groupBy: [field], filters: [{ field: other, op: "contains", value: ["a", "4"] }] },
  ];
});

/**
 * Asks `count` random questions about these events, and those that counts made in advance can answer whatever was drawn;
 * tells how many answers came from such counts.
 */
async function askAtRandom(events: readonly WafEvent[], count: number): Promise<number> {
  const naive = createNaiveSearch(events);
  const drawn = Array.from({ length: count }, () =>
    draw.chance(0.3) ? drawCountedBody(draw, events) : drawBody(draw, events),
  );
  const bodies: object[] = [...SETTLED, ...drawn];
  let rolledUp = 0;
  const ask = async () => {
    for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
      const options = draw.one([
        MOST_ONE_BY_ONE,
        { ...MOST_ONE_BY_ONE, looseEvents: 0 },
        { ...MOST_ONE_BY_ONE, codedEvents: 0 },
      ]);
      if ((await expectSame(database, naive, body, options)) === "roll-up") rolledUp++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, ask));
  return rolledUp;
}

test("every answer is the naive one's, before days close, after, and while what was counted goes out of date", async () => {
  const events = drawEvents(draw, 1_200, "");
  await storeEvents(database, ZONE, events, { expectNew: true });
  expect(await askAtRandom(events, 300)).toBe(0);

  // The last day stays open.
  await closeDays(END - DAY_MS + 3 * DAY_MS);
  expect(await askAtRandom(events, 50)).toBe(0);
  await buildCubes();
  expect(await askAtRandom(events, 250)).toBeGreaterThanOrEqual(SETTLED.length);

  for (let round = 0; round < 3; round++) {
    const late = drawEvents(draw, 40, `late-${round}-`).map((event) => ({
      ...event,
      occurredAt: FIRST_DAY + (event.occurredAt % (2 * DAY_MS)),
    }));
    await storeEvents(database, ZONE, late, { expectNew: round === 0 });
    events.push(...late);
    expect(await askAtRandom(events, 40)).toBeGreaterThanOrEqual(SETTLED.length);
    await buildCubes();
    expect(await askAtRandom(events, 40)).toBeGreaterThanOrEqual(SETTLED.length);
  }
});
