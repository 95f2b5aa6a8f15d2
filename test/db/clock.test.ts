import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { readClockOffset } from "#db/postgres/server.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});

afterAll(() => database.drop());

afterEach(() => void vi.useRealTimers());

test("on the machine Postgres runs on the offset is within the time of the query", async () => {
  const before = Date.now();
  const offsetMs = await readClockOffset(database.db);
  expect(Math.abs(offsetMs)).toBeLessThanOrEqual(Date.now() - before + 2);
});

test.each([-10, 10])("a clock that is %i minutes off is reported with the difference", async (minutes) => {
  const skewMs = minutes * 60_000;
  const realNow = Date.now;
  const start = realNow();
  vi.spyOn(Date, "now").mockImplementation(() => realNow() + skewMs);
  const offsetMs = await readClockOffset(database.db);
  vi.restoreAllMocks();
  expect(Math.abs(offsetMs + skewMs)).toBeLessThanOrEqual(realNow() - start + 2);
});
