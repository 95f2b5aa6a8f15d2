import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { describeBackfill, watchBackfill } from "#faces/cli/start/describe-running.ts";
import { createProgressLine } from "#lib/progress-bar.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 10);
const ZONES = [101, 102];

const REFUSED = new EdgeError({
  operation: "search-event-logs",
  code: "EDGE_UNAUTHORIZED",
  disposition: "give-up",
  text: "no such key",
  status: 401,
});

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
beforeEach(() => database.pool.query("truncate coverage_windows"));
afterAll(() => database.drop());

async function openWatch(
  answer: (asked: { shieldZoneId: number }) => Promise<unknown> = () => Promise.reject(new Error("no")),
) {
  let printed = "";
  const stream = { isTTY: true, columns: 80, write: (text: string) => (printed += text) };
  // The platform cannot say how much there is: the bar does without.
  const edge = { searchEventLogs: answer } as unknown as EdgeClient;
  const problems: string[] = [];
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const outage = { isOn: false, met: 0 };
  const reached = {
    ...database,
    get db() {
      if (!outage.isOn) return database.db;
      outage.met++;
      throw new Error("connection terminated");
    },
  };
  const app = { database: reached, edge, clock: () => NOW, zoneIds: ZONES };
  const watching = watchBackfill(
    app,
    createProgressLine(stream),
    (problem, event) => problems.push(`${event}: ${problem}`),
    stopping.signal,
    20,
  );
  const searchAll = (zoneId: number) =>
    database.pool.query(
      `insert into coverage_windows (zone_id, starts_at, searched_through)
       select $1, hour, hour + interval '1 hour' from generate_series($2::timestamptz, $3, interval '1 hour') hour`,
      [zoneId, new Date(startOfHour(horizonAt(NOW))), new Date(startOfHour(NOW) - HOUR_MS)],
    );
  return { outage, watching, stopping, searchAll, problems, printed: () => printed };
}

test("it ends with the number of stored events once every hour of every zone was searched", async () => {
  const { watching, searchAll, printed } = await openWatch(() => Promise.resolve({ page: { total: 0 } }));
  await searchAll(101);
  await vi.waitFor(() => expect(printed()).toContain("0 of 0 events"));
  await database.pool.query("update coverage_windows set stored_count = 20");
  await searchAll(102);
  expect(await watching).toBe(20 * 72);
  expect(printed().endsWith("\r\u001b[K")).toBe(true);
  expect(describeBackfill(1_440)).toBe("History complete: 1,440 events of the last 72 hours are stored.");
});

test("a platform that refuses the key is named at once, once, with the setting to look at", async () => {
  const { problems, printed } = await openWatch(() => Promise.reject(REFUSED));
  await vi.waitFor(
    () => expect(printed().split("waiting for the platform").length).toBeGreaterThan(3),
    5_000,
  );
  expect(problems).toEqual([
    "access key refused by the platform, asked again: EDGE_UNAUTHORIZED search-event-logs: no such key (status 401): check the key of EDGE_API_KEY, of the file that EDGE_API_KEY_FILE names, or of the account",
  ]);
});

test("a zone that the platform does not answer for is left out of the bar and named", async () => {
  const { printed, searchAll } = await openWatch(({ shieldZoneId }) =>
    shieldZoneId === 102 ? Promise.reject(REFUSED) : Promise.resolve({ page: { total: 2_000 } }),
  );
  // Zone 102 is never complete while zone 101 is, or the progress would end.
  await searchAll(102);
  await database.pool.query("delete from coverage_windows where zone_id = 102 and starts_at = $1", [
    new Date(startOfHour(NOW) - HOUR_MS),
  ]);
  await searchAll(101);
  await database.pool.query("update coverage_windows set stored_count = 20");
  await vi.waitFor(() => {
    const last = printed().split("\r").at(-1);
    expect(last).toMatch(/^█{14}░{6} {3}72 % {2}1,440 of 2,000 events .* without zone 102/);
  });
});

test("F30: a database that is away for a moment does not end it", async () => {
  const { outage, watching, searchAll, printed } = await openWatch();
  await vi.waitFor(() => expect(printed()).not.toBe(""));
  outage.isOn = true;
  await vi.waitFor(() => expect(outage.met).toBeGreaterThan(1), 5_000);
  outage.isOn = false;
  for (const zoneId of ZONES) await searchAll(zoneId);
  expect(await watching).toBe(0);
});

test("a signal ends it with nothing to say", async () => {
  const { watching, stopping } = await openWatch();
  stopping.abort();
  expect(await watching).toBeNull();
});
