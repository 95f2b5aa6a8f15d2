import { expect, test } from "vitest";
import type { Emulator } from "#emulator/emulator.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { hashEventKey, unpackLogIdHashes } from "#model/waf-event.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { NOW, openEmulator, oracle } from "../emulator/support.ts";
import { type IngestTest, openChangingPlatform, openIngest, storedRows } from "../ingest/ingest-support.ts";
import { sample } from "../support/sample.ts";
import { countStates, hoursOf, isSettled, prove, sealedIds } from "./coverage-support.ts";

const database = await shareDatabase();
const LATE = { zones: [101], eventsPerSecond: 0.03, historyHours: 1 } as const;
/** The zone was watched before the history began. */
const WATCHED = { database, openHours: 1 } as const;
const OVERLAP_MS = 3 * MINUTE_MS;
const THIS_HOUR = NOW - (NOW % HOUR_MS);

/** A platform that counts what it is asked. */
async function watchSearches(emulator: Emulator) {
  const grouped: { from: number; to: number; buckets: number }[] = [];
  const flat: { from: number; to: number }[] = [];
  const url = await openChangingPlatform(emulator, (body, path, request) => {
    if (!path.endsWith("/search")) return body;
    const asked = JSON.parse(request);
    if (!request.includes("groupBy")) flat.push(asked);
    else if ((asked.to - asked.from) / asked.buckets < HOUR_MS) grouped.push(asked);
    return body;
  });
  return { grouped, flat, url };
}

/** The log ids that the platform has shown, that the polls no longer look back for, and that are not stored. */
async function findMissing(emulator: Emulator, { database }: IngestTest): Promise<string[]> {
  const stored = new Set((await storedRows(database)).map(({ log_id }) => log_id));
  const passed = emulator.now() - OVERLAP_MS - MINUTE_MS;
  return (await oracle(emulator)).flatMap(({ logId, timestamp }) =>
    timestamp >= THIS_HOUR && timestamp < passed && !stored.has(logId) ? [logId] : [],
  );
}

/** Polls each minute, compares every five, and returns how many events each comparison has found missing. */
async function follow(emulator: Emulator, ingest: IngestTest, minutes: number): Promise<number[]> {
  const missing: number[] = [];
  for (let minute = 1; minute <= minutes; minute += 1) {
    emulator.advance(MINUTE_MS);
    await ingest.poll();
    if (minute % 5 > 0) continue;
    missing.push((await findMissing(emulator, ingest)).length);
    await ingest.reconcile();
    expect(await findMissing(emulator, ingest)).toEqual([]);
  }
  return missing;
}

async function expectSealed(emulator: Emulator, ingest: IngestTest): Promise<void> {
  emulator.advance(50 * MINUTE_MS);
  for (const minutes of [0, 6, 16]) {
    emulator.advance(minutes * MINUTE_MS);
    await prove(emulator, ingest);
  }
  const settled = (await hoursOf(ingest)).filter((hour) => isSettled(hour, emulator.now()));
  expect(settled.filter(({ state }) => state !== "sealed")).toEqual([]);
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(stored).toEqual(shown);
}

const LATENESS = [
  ["some events up to fifty minutes after their time", { lateShare: 0.2, maxLatenessMs: 50 * MINUTE_MS }],
  ["most events up to a quarter of an hour", { lateShare: 0.7, maxLatenessMs: 15 * MINUTE_MS }],
] as const;
test.each(sample(LATENESS, ([, { lateShare }]) => lateShare === 0.7))(
  "what the platform shows late is stored by the next comparison: %s",
  async (_what, late) => {
    const emulator = await openEmulator({ ...LATE, ...late });
    const { grouped, url } = await watchSearches(emulator);
    const ingest = await openIngest(emulator, { ...WATCHED, url });
    await ingest.poll();
    await ingest.walk();

    const missing = await follow(emulator, ingest, 25);

    expect(Math.max(...missing)).toBeGreaterThan(2);
    expect(grouped).toHaveLength(missing.length);
    await expectSealed(emulator, ingest);
  },
  60_000,
);

test("without late events a comparison is one call, and a minute that settles is compared by the other one", async () => {
  const emulator = await openEmulator({ ...LATE, lateShare: 0 });
  const { grouped, flat, url } = await watchSearches(emulator);
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  flat.length = 0;
  await ingest.reconcile();
  expect(grouped).toEqual([expect.objectContaining({ from: THIS_HOUR, to: NOW - OVERLAP_MS, buckets: 27 })]);
  emulator.setNow(THIS_HOUR + HOUR_MS + 10 * MINUTE_MS);
  await ingest.poll();
  flat.length = 0;
  await ingest.reconcile();
  expect(grouped.slice(1)).toEqual([expect.objectContaining({ from: THIS_HOUR, buckets: 67 })]);
  emulator.advance(6 * MINUTE_MS);
  await ingest.poll();
  flat.length = 0;
  await ingest.reconcile();
  expect(grouped.slice(2)).toEqual([expect.objectContaining({ from: THIS_HOUR + HOUR_MS, buckets: 13 })]);
  expect(flat).toEqual([]);
});

test("minutes that the search keeps hiding are searched less and less often, and are stored once it shows them", async () => {
  const emulator = await openEmulator({ ...LATE, lateShare: 0 });
  emulator.addFault({ kind: "hidden-rows", share: 0.3 });
  const { flat, url } = await watchSearches(emulator);
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  const searches: number[] = [];
  for (let minute = 0; minute < 25; minute += 5) {
    flat.length = 0;
    await ingest.reconcile();
    searches.push(flat.length);
    emulator.advance(5 * MINUTE_MS);
  }
  expect(searches.map((count) => count > 0)).toEqual([true, false, true, false, false]);
  expect(Math.max(...searches)).toBeLessThanOrEqual(10);
  expect(await findMissing(emulator, ingest)).not.toEqual([]);
  emulator.clearFaults();
  emulator.advance(5 * MINUTE_MS);
  await ingest.poll();
  await ingest.reconcile();
  expect(await findMissing(emulator, ingest)).toEqual([]);
  expect(await countStates(ingest)).toMatchObject({ gap: 0 });
  await expectSealed(emulator, ingest);
}, 60_000);

test.each(sample(["oldest", "newest"] as const, (order) => order === "oldest"))(
  "records that the list shows late, %s first, are stored within half an hour after that",
  async (order) => {
    const emulator = await openEmulator({ ...LATE, lateShare: 0, switches: { order, pageSize: 15 } });
    let hidden: ReadonlySet<string> = new Set();
    const url = await openChangingPlatform(emulator, (body, path) => {
      if (!path.includes("/11-20-2026")) return body;
      const page = JSON.parse(body) as { logs: { logId: string }[] };
      return JSON.stringify({ ...page, logs: page.logs.filter(({ logId }) => !hidden.has(logId)) });
    });
    const ingest = await openIngest(emulator, { ...WATCHED, url });
    const events = await oracle(emulator);
    const [early, late] = [8, 25].map(
      (minutes) => events.findLast(({ timestamp }) => timestamp < NOW - minutes * MINUTE_MS)?.logId ?? "",
    );
    const isRecorded = async (logId: string | undefined) => {
      const at = events.find((event) => event.logId === logId)?.timestamp ?? 0;
      const hash = hashEventKey({ occurredAt: at, logId: logId ?? "" });
      const { rows } = await ingest.database.pool.query<{ hashes: Buffer }>(
        "select log_id_hashes as hashes from raw_blocks",
      );
      return rows.some(({ hashes }) => unpackLogIdHashes(hashes).includes(hash));
    };
    hidden = new Set([early ?? "", late ?? ""]);
    await ingest.poll();
    await ingest.walk();
    expect(await findMissing(emulator, ingest)).toEqual([]);
    expect([await isRecorded(early), await isRecorded(late)]).toEqual([false, false]);
    hidden = new Set();

    emulator.advance(2 * MINUTE_MS);
    await ingest.poll();
    await ingest.walk();
    // A short pass reads a quarter of an hour again.
    expect([await isRecorded(early), await isRecorded(late)]).toEqual([true, false]);
    await ingest.reconcile();
    emulator.advance(14 * MINUTE_MS);
    await ingest.poll();
    await ingest.walk();
    expect(await isRecorded(late)).toBe(true);

    // While every record is there, the next full pass is due after an hour.
    emulator.advance(5 * MINUTE_MS);
    await ingest.poll();
    await ingest.walk();
    await ingest.reconcile();
    const before = await readFullPass(ingest);
    emulator.advance(MINUTE_MS);
    await ingest.walk();
    expect(await readFullPass(ingest)).toBe(before);
    await expectSealed(emulator, ingest);
  },
  60_000,
);

async function readFullPass({ database }: IngestTest): Promise<number> {
  const { rows } = await database.pool.query<{ at: Date }>(
    "select full_pass_started_at as at from ingest_cursors where day = '2026-11-20'",
  );
  return rows[0]?.at.getTime() ?? 0;
}
