import { expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { openEmulator } from "../emulator/support.ts";
import { openChangingPlatform, openIngest } from "../ingest/ingest-support.ts";
import { hoursOf, isSettled, proveOverAnHour, sealedIds } from "./coverage-support.ts";

const database = await shareDatabase();
const NO_ROWS = { rows: null, groups: null, total: 0, totalPages: 0, page: 0 };
const NO_LOGS = { logs: null, hasMoreData: false, continuationToken: null, startToken: null };
const FAILED = { statusCode: 202, success: false, message: null, errorKey: null };
const DEFAULT = { statusCode: 0, success: false, message: null, errorKey: null };

const LIES: readonly [name: string, search: object, list: object][] = [
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
];

test("answers without an event and without their ends move no cursor and seal no hour, and every hour is sealed after them", async () => {
  const emulator = await openEmulator({ zones: [101], historyHours: 3, eventsPerSecond: 0.01 });
  let lie: (typeof LIES)[number] | null = null;
  const url = await openChangingPlatform(emulator, (body, path) => {
    if (lie === null) return body;
    return JSON.stringify(path.endsWith("/search") ? lie[1] : lie[2]);
  });
  const ingest = await openIngest(emulator, { database, url, openHours: 3 });
  const readOpen = async () => (await hoursOf(ingest)).filter(({ state }) => state === "open");
  for (lie of LIES) {
    const codes = new Set<string>();
    // A lie lasts longer than the hour after which an unlikely answer is believed.
    for (const job of [ingest.poll, ingest.walk, ingest.reconcile, ingest.seal, ingest.poll, ingest.walk]) {
      await job().catch((thrown: unknown) => {
        if (!(thrown instanceof EdgeError)) throw thrown;
        codes.add(thrown.code);
      });
      emulator.advance(13 * MINUTE_MS);
    }
    await ingest.seal();
    expect([...codes]).toHaveLength(1);
    expect(["EDGE_REJECTED", "EDGE_MALFORMED"]).toContain([...codes][0]);
    const moved = (await readOpen()).filter((hour) => hour.searchedThrough ?? hour.reconciledAt);
    const { rows: passes } = await database.pool.query(
      "select * from ingest_cursors where pass_result is not null",
    );
    expect({ after: lie[0], moved, passes }).toEqual({ after: lie[0], moved: [], passes: [] });
  }
  // Every hour since the history began is undecided.
  expect((await readOpen()).length).toBeGreaterThan(8);

  lie = null;
  await proveOverAnHour(emulator, ingest);
  const open = (await readOpen()).filter((hour) => isSettled(hour, emulator.now()));
  expect(open).toEqual([]);
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(shown.length).toBeGreaterThan(250);
  expect(stored).toEqual(shown);
});
