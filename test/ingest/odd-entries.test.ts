import { expect, test } from "vitest";
import { readSuspicions } from "#db/proof/platform-health.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { listCoverage } from "#proof/coverage/hours.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { openEmulator, oracle } from "../emulator/support.ts";
import { performOn } from "../operations/perform-on.ts";
import { expectedRows, type IngestTest, openIngest, storedRows, ZONE } from "./ingest-support.ts";

const database = await shareDatabase();
const HISTORY = { zones: [ZONE], historyHours: 2, eventsPerSecond: 0.02 } as const;
const WATCHED = { openHours: 2 } as const;

test("a continuation token of 64 KiB is followed", async () => {
  const emulator = await openEmulator({ ...HISTORY, switches: { pageSize: 40 } });
  emulator.addFault({ kind: "long-token", bytes: 65_500 });
  const ingest = await openIngest(emulator, { database });
  await ingest.walk();
  const ids = (await storedRows(ingest.database)).map(({ log_id }) => log_id);
  expect(ids).toEqual(expectedRows(await oracle(emulator)).map(({ log_id }) => log_id));
  expect(await readSuspicions(ingest.database.db)).toEqual([]);
});

test("a token that cannot be sent makes the list suspect, until a pass reaches the end", async () => {
  const emulator = await openEmulator({ ...HISTORY, switches: { pageSize: 40 } });
  emulator.addFault({ kind: "long-token", bytes: 70_000 });
  const ingest = await openIngest(emulator, { database });
  await ingest.walk();
  await ingest.walk();
  const [found] = await readSuspicions(ingest.database.db);
  expect(found).toMatchObject({
    zoneId: ZONE,
    route: "list",
    isWhole: false,
    reason: expect.stringMatching(
      /^The list of 2026-11-\d\d goes on with a continuation token of 70,0\d\d bytes, which cannot be sent\..* at most 65,536 bytes\.$/,
    ) as unknown,
  });
  const { items, zones } = await performOn(ingest.database, listCoverage, listCoverage.input.parse({}), {
    by: "alice",
    now: emulator.now(),
  });
  expect(zones[0]?.suspicions.map(({ reason }) => reason)).toEqual([found?.reason]);
  expect(items.some(({ state }) => state === "sealed")).toBe(false);

  emulator.clearFaults();
  emulator.advance(60_000);
  await ingest.walk();
  expect(await readSuspicions(ingest.database.db)).toEqual([]);
});

type Stored = Awaited<ReturnType<typeof readStored>>;

/** Everything that is stored of events, but not which route showed an event first. */
async function readStored({ database }: IngestTest) {
  const { rows: facts } = await database.pool.query(
    "select log_id, method, request_id, matched_key is null, facts from waf_events order by log_id",
  );
  return { rows: await storedRows(database), facts };
}

/** What is stored of the same events in their usual form. */
let usual: Promise<Stored> | undefined;

test.each(["fraction", "seconds", "other-log", "lower-headers", "match-list"] as const)(
  "entries in the form %s are stored as all others are",
  async (shape) => {
    const emulator = await openEmulator({ ...HISTORY, historyHours: 1 });
    const readAll = async () => {
      const ingest = await openIngest(emulator, WATCHED);
      await ingest.poll();
      await ingest.walk();
      expect((await ingest.database.pool.query("select from quarantined_entries")).rowCount).toBe(0);
      return readStored(ingest);
    };
    usual ??= readAll();
    const expected = await usual;
    emulator.addFault({ kind: "odd-entries", share: 1, shape });
    const stored = await readAll();
    expect(stored.rows.length).toBeGreaterThan(50);
    expect(stored).toEqual(expected);
  },
);

test("an hour that is open because an entry cannot be read says so, until the entry is stored", async () => {
  const emulator = await openEmulator(HISTORY);
  emulator.addFault({ kind: "odd-entries", share: 0.2 });
  const ingest = await openIngest(emulator, { ...WATCHED, database });
  const { poll, walk, reconcile, repair, seal } = ingest;
  for (let round = 0; round < 3; round++) {
    for (const run of [poll, walk, reconcile, repair, seal]) await run();
    emulator.advance(10 * MINUTE_MS);
  }
  const reasons = async () => {
    const asked = { by: "alice", now: emulator.now() };
    const { items } = await performOn(ingest.database, listCoverage, listCoverage.input.parse({}), asked);
    return items.flatMap(({ storedCount, notSealedBecause }) =>
      storedCount > 0 ? (notSealedBecause ?? []) : [],
    );
  };
  const named =
    /^the platform counts more events than are stored; \d+ entr\w+ that may be of this hour (?:is|are) in quarantine$/;
  expect((await reasons()).filter((reason) => named.test(reason)).length).toBeGreaterThan(0);
  await ingest.database.pool.query("delete from quarantined_entries");
  expect((await reasons()).filter((reason) => /quarantine/.test(reason))).toEqual([]);
});
