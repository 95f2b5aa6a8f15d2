import { expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { openEmulator } from "../emulator/support.ts";
import { openChangingPlatform, openIngest } from "../ingest/ingest-support.ts";
import { countStates, hoursOf, proveOverAnHour, sealedIds } from "./coverage-support.ts";

const database = await shareDatabase();
const NO_ROWS = { rows: null, groups: null, total: 0, totalPages: 0, page: 0 };
const NO_LOGS = { logs: null, hasMoreData: false, continuationToken: null, startToken: null };
const FAILED = { statusCode: 202, success: false, message: null, errorKey: null };
const DEFAULT = { statusCode: 0, success: false, message: null, errorKey: null };

/** The hours that are sealed before a test begins. */
const SEALED = 70;

test.each<[name: string, search: object, list: object]>([
  [
    "a status block without a reason",
    { ...NO_ROWS, errorResponse: FAILED },
    { ...NO_LOGS, errorResponse: FAILED },
  ],
  [
    "a status block beside empty lists",
    { ...NO_ROWS, rows: [], groups: [], errorResponse: FAILED },
    { ...NO_LOGS, logs: [], errorResponse: FAILED },
  ],
  [
    "the default status block without lists",
    { ...NO_ROWS, errorResponse: DEFAULT },
    { ...NO_LOGS, errorResponse: DEFAULT },
  ],
  ["no status block and no lists", NO_ROWS, NO_LOGS],
  ["lists without their ends", { rows: [], groups: [] }, { logs: [] }],
])("%s moves no cursor and seals no hour", async (_name, search, list) => {
  const emulator = await openEmulator({ zones: [101], historyHours: 3, eventsPerSecond: 0.02 });
  let isLying = true;
  const url = await openChangingPlatform(emulator, (body, path) => {
    if (!isLying) return body;
    return JSON.stringify(path.endsWith("/search") ? search : list);
  });
  const ingest = await openIngest(emulator, { database, url, openHours: 3 });
  const codes = new Set<string>();
  for (const job of [ingest.poll, ingest.walk, ingest.reconcile, ingest.seal, ingest.poll, ingest.walk]) {
    await job().catch((thrown: unknown) => {
      if (!(thrown instanceof EdgeError)) throw thrown;
      codes.add(thrown.code);
    });
    emulator.advance(16 * MINUTE_MS);
  }
  await ingest.seal();
  expect([...codes].every((code) => code === "EDGE_REJECTED" || code === "EDGE_MALFORMED")).toBe(true);
  expect(codes.size).toBe(1);
  expect((await countStates(ingest))["sealed"]).toBe(SEALED);
  const open = (await hoursOf(ingest)).filter(({ state }) => state === "open");
  const moved = open.filter((hour) => hour.searchedThrough ?? hour.reconciledAt);
  expect(moved).toEqual([]);
  const { rows: passes } = await ingest.database.pool.query(
    "select * from ingest_cursors where pass_result is not null",
  );
  expect(passes).toEqual([]);

  isLying = false;
  await proveOverAnHour(emulator, ingest);
  expect((await countStates(ingest))["sealed"]).toBeGreaterThan(SEALED + 2);
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(shown.length).toBeGreaterThan(150);
  expect(stored).toEqual(shown);
});
