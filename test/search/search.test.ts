import { afterAll, beforeAll, expect, test } from "vitest";
import type { NewEvent } from "../../db/event-rows.ts";
import { ensurePartitions } from "../../db/partitions.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { storeEvents } from "../db/new-events.ts";
import { createFractions } from "../spike/support/histories.ts";
import { createDraw, DAYS, drawBody, drawEvents } from "./draw.ts";
import { createNaiveSearch } from "./naive-search.ts";
import { expectSame, ZONE } from "./world.ts";

const AT_ONCE = 6;
let database: MigratedDatabase;
let events: NewEvent[];

beforeAll(async () => {
  database = await createMigratedDatabase();
  await ensurePartitions(database, DAYS);
  const draw = createDraw(createFractions(20_260_301));
  events = drawEvents(draw, 1_200, "");
  await storeEvents(database, ZONE, events, { expectNew: true });
  await storeEvents(database, ZONE + 1, drawEvents(draw, 300, "other-"), { expectNew: true });
});

afterAll(() => database.drop());

test("every answer is the naive one's, field by field", async () => {
  const naive = createNaiveSearch(events);
  const draw = createDraw(createFractions(7));
  const bodies = Array.from({ length: Number(process.env["N"] ?? 1500) }, () => drawBody(draw, events));
  const askAll = async () => {
    for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) await expectSame(database, naive, body);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askAll));
  expect(bodies).toEqual([]);
});
