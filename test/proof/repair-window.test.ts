import { expect, test } from "vitest";
import type { Emulator } from "#emulator/emulator.ts";
import { createSweepJob } from "#jobs/health/sweep.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { NOW, openEmulator, oracle } from "../emulator/support.ts";
import {
  type IngestTest,
  openChangingPlatform,
  openIngest,
  storedRows,
  ZONE,
} from "../ingest/ingest-support.ts";
import { sample } from "../support/sample.ts";
import { cellsOf, countStates, hoursOf, isSettled, prove, sealedIds } from "./coverage-support.ts";

const database = await shareDatabase();
const SPARSE = { zones: [ZONE], historyHours: 7, eventsPerSecond: 0.01, lateShare: 0 } as const;
/** The zone was watched before the history began. */
const WATCHED = { database, openHours: 7 } as const;
const THIS_HOUR = NOW - (NOW % HOUR_MS);

/** Returns the flat searches that reach the platform. */
async function watchFlat(emulator: Emulator) {
  const asked: { from: number; to: number; filters?: unknown }[] = [];
  const url = await openChangingPlatform(emulator, (body, path, request) => {
    if (path.endsWith("/search") && !request.includes("groupBy")) asked.push(JSON.parse(request));
    return body;
  });
  return { asked, url };
}

/** Deletes events and everything that was written with them, as if a page had not shown them. */
async function forget({ database }: IngestTest, where: string): Promise<void> {
  await database.pool.query(`
    with gone as (delete from waf_events where zone_id = ${ZONE} and ${where} returning occurred_at)
    update coverage_windows w set stored_count = stored_count - n
    from (select date_trunc('hour', occurred_at) as hour, count(*) as n from gone group by 1) g
    where w.starts_at = g.hour`);
}

/** Everything that has settled is sealed, and holds exactly what the platform ever showed. */
async function expectComplete(emulator: Emulator, ingest: IngestTest): Promise<void> {
  const hours = await hoursOf(ingest);
  const settled = hours.filter((hour) => isSettled(hour, emulator.now()));
  expect(settled.filter(({ state }) => state !== "sealed")).toEqual([]);
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(stored.length).toBeGreaterThan(100);
  expect(stored).toEqual(shown);
}

const LOSSES = [
  ["F44: a list that ends early", [{ kind: "shortened-page", keep: 0.5, endsEarly: true }], false],
  ["F44: a list whose pages are cut", [{ kind: "shortened-page", keep: 0.7 }], false],
  ["F48: a list that drops events", [{ kind: "dropped-events", share: 0.3, passes: 1 }], false],
  ["a search that hides rows", [{ kind: "hidden-rows", share: 0.3 }], false],
  [
    "F44: both routes, which hide the same events",
    [
      { kind: "hidden-rows", share: 0.3 },
      { kind: "dropped-events", share: 0.3, passes: 9 },
    ],
    true,
  ],
] as const;
/** The whole pipeline is tested with this one in completeness.test.ts. */
const WITH_PIPELINE = "F48: a list that drops events";
test.each(sample(LOSSES, ([what]) => what === WITH_PIPELINE))(
  "%s: what is missing is noticed, not sealed, and repaired without a human",
  async (_what, faults, isUnseen) => {
    const emulator = await openEmulator({ ...SPARSE, historyHours: 4, switches: { pageSize: 40 } });
    for (const fault of faults) emulator.addFault(fault);
    const ingest = await openIngest(emulator, { database, openHours: 4 });
    await prove(emulator, ingest);
    await prove(emulator, ingest);
    const missing = (await hoursOf(ingest)).filter(({ missingCells }) => missingCells > 0);
    expect(missing.length > 2).toBe(isUnseen);
    expect(missing.every(({ state }) => state === "open")).toBe(true);
    const { stored, shown } = await sealedIds(emulator, ingest);
    expect(stored).toEqual(shown);
    emulator.clearFaults();
    // The next full pass is due after a quarter of an hour; every hour has events.
    for (const minutes of [16, 16, 6]) {
      emulator.advance(minutes * MINUTE_MS);
      await prove(emulator, ingest);
    }
    await expectComplete(emulator, ingest);
    expect((await cellsOf(ingest)).filter(({ resolved_at }) => resolved_at === null)).toEqual([]);
  },
);

test("a repair asks for exactly the cell: one rule, one hour", async () => {
  const emulator = await openEmulator(SPARSE);
  const { asked, url } = await watchFlat(emulator);
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  emulator.advance(1_000);
  const [from, to] = [THIS_HOUR - 4 * HOUR_MS, THIS_HOUR - 3 * HOUR_MS];
  const inHour = (await oracle(emulator)).filter(({ timestamp }) => timestamp >= from && timestamp < to);
  const ruleId = inHour[0]?.ruleId ?? "";
  await forget(
    ingest,
    `rule_id = '${ruleId}' and occurred_at >= to_timestamp(${from / 1000}) and occurred_at < to_timestamp(${to / 1000})`,
  );
  await ingest.reconcile();
  asked.length = 0;
  await ingest.repair();
  expect(asked).toEqual([
    expect.objectContaining({ from, to, filters: [{ field: "ruleId", op: "eq", value: [ruleId] }] }),
  ]);
  emulator.advance(1_000);
  await ingest.reconcile();
  expect(await cellsOf(ingest)).toMatchObject([
    { rule_id: ruleId, repairs: 1, resolved_at: new Date(emulator.now()) },
  ]);
  const missing = (await hoursOf(ingest)).filter(({ missingCells }) => missingCells > 0);
  expect(missing).toEqual([]);
});

test("an hour that lacks many rules is searched whole, once, and before the hours that expire later", async () => {
  const emulator = await openEmulator(SPARSE);
  const { asked, url } = await watchFlat(emulator);
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  emulator.advance(1_000);
  await forget(ingest, `occurred_at < to_timestamp(${(THIS_HOUR - 3 * HOUR_MS) / 1000})`);
  await ingest.reconcile();
  asked.length = 0;
  await ingest.repair();
  const hours = new Set((await cellsOf(ingest)).map(({ starts_at }) => starts_at.getTime()));
  expect(hours.size).toBeGreaterThan(3);
  const whole = asked.filter(({ filters }) => filters === undefined);
  expect(whole.length).toBeGreaterThan(2);
  expect(whole.every(({ from, to }) => to - from === HOUR_MS)).toBe(true);
  expect(asked.map(({ from }) => from)).toEqual(asked.map(({ from }) => from).toSorted((a, b) => a - b));
  const shown = (await oracle(emulator)).filter(({ timestamp }) => timestamp < THIS_HOUR);
  const stored = (await storedRows(ingest.database)).filter(({ at }) => at < THIS_HOUR);
  expect(stored.map(({ log_id }) => log_id).sort()).toEqual(shown.map(({ logId }) => logId).sort());
});

test("events that no search shows are requested less and less often, and at last over the whole hour", async () => {
  const emulator = await openEmulator(SPARSE);
  emulator.addFault({ kind: "hidden-rows", share: 0.02 });
  const { asked, url } = await watchFlat(emulator);
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  emulator.advance(1_000);
  await ingest.reconcile();
  const cells = await cellsOf(ingest);
  expect(cells.length).toBeGreaterThan(0);
  asked.length = 0;
  const askedAt: number[] = [];
  const due = [0, 1, 3, 7, 15, 31, 63, 123, 183];
  const startedAt = emulator.now();
  // A repair that is due earlier is found a minute before the next one, as nothing else has ended its pause.
  for (const minute of new Set(due.flatMap((at) => [at - 1, at]))) {
    if (minute < 0) continue;
    emulator.setNow(startedAt + minute * MINUTE_MS);
    const before = asked.length;
    await ingest.repair();
    if (asked.length > before) askedAt.push(minute);
  }
  expect(askedAt).toEqual(due);
  expect(asked.at(-1)?.filters).toBeUndefined();
  expect((await hoursOf(ingest)).filter(({ missingCells }) => missingCells > 0)).not.toEqual([]);
});

test("two replicas at once repair a cell once", async () => {
  const emulator = await openEmulator(SPARSE);
  const { asked, url } = await watchFlat(emulator);
  const first = await openIngest(emulator, { ...WATCHED, url });
  const second = await openIngest(emulator, { url, database: first.database });
  await first.poll();
  emulator.advance(1_000);
  await forget(first, `occurred_at < to_timestamp(${(THIS_HOUR - 4 * HOUR_MS) / 1000})`);
  await first.reconcile();
  const hours = new Set((await cellsOf(first)).map(({ starts_at }) => starts_at.getTime()));
  asked.length = 0;
  await Promise.all([first.repair(), second.repair(), second.repair()]);
  await second.repair();
  const keys = asked.map((request) => JSON.stringify(request));
  expect(hours.size).toBeGreaterThan(0);
  expect(new Set(keys).size).toBe(keys.length);
});

test("F1: a repair that is ended in the middle goes on in its turn, and every hour is sealed", async () => {
  const emulator = await openEmulator(SPARSE);
  const stopping = new AbortController();
  let isRepairing = false;
  let answers = 0;
  const first = await openIngest(emulator, {
    ...WATCHED,
    url: await openChangingPlatform(emulator, (body) => {
      if (isRepairing && ++answers === 3) stopping.abort(new Error("killed"));
      return body;
    }),
  });
  await first.poll();
  emulator.advance(1_000);
  await forget(first, `occurred_at < to_timestamp(${(THIS_HOUR - 3 * HOUR_MS) / 1000})`);
  await first.reconcile();
  isRepairing = true;
  await first.repair(stopping.signal);
  const second = await openIngest(emulator, { database: first.database });
  for (const minutes of [16, 16]) {
    await prove(emulator, second);
    emulator.advance(minutes * MINUTE_MS);
  }
  await prove(emulator, second);
  await expectComplete(emulator, second);
  expect(await countStates(second)).toMatchObject({ gap: 0 });
});

test("F21: the sweep enqueues a due repair whose job was lost, until its hour is decided", async () => {
  const emulator = await openEmulator(SPARSE);
  emulator.addFault({ kind: "hidden-rows", share: 0.02 });
  const ingest = await openIngest(emulator, WATCHED);
  const clock = () => emulator.now();
  const enqueued: string[] = [];
  const enqueue = async (job: string, payload?: unknown) =>
    void enqueued.push(`${job} ${JSON.stringify(payload)}`);
  const sweep = async () => {
    enqueued.length = 0;
    await createSweepJob({ database: ingest.database, clock, enqueue }).run(
      {} as never,
      new AbortController().signal,
    );
    return enqueued.filter((one) => one.startsWith("repair-window"));
  };
  await ingest.poll();
  emulator.advance(1_000);
  expect(await sweep()).toEqual([]);
  await ingest.reconcile();
  expect(await sweep()).toEqual([`repair-window {"zoneId":${ZONE}}`]);
  await ingest.repair();
  expect(await sweep()).toEqual([]);
  emulator.advance(61_000);
  expect(await sweep()).toHaveLength(1);
  emulator.advance(73 * HOUR_MS);
  await ingest.seal();
  expect(await sweep()).toEqual([]);
  expect((await cellsOf(ingest)).every(({ resolved_at }) => resolved_at === null)).toBe(true);
});

test("hours that a run did not come to, because the platform failed twice in a row, stay due and uncounted", async () => {
  const emulator = await openEmulator(SPARSE);
  let isDown = false;
  const url = await openChangingPlatform(emulator, (body, path, request) =>
    isDown && path.endsWith("/search") && !request.includes("groupBy") ? null : body,
  );
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  emulator.advance(1_000);
  await forget(ingest, `occurred_at < to_timestamp(${(THIS_HOUR - 1 * HOUR_MS) / 1000})`);
  await ingest.reconcile();
  const before = await cellsOf(ingest);
  const [first = 0, second = 0, ...rest] = new Set(before.map(({ starts_at }) => starts_at.getTime()));
  expect(rest.length).toBeGreaterThan(2);
  isDown = true;
  await expect(ingest.repair()).rejects.toMatchObject({ code: "EDGE_UNAVAILABLE" });
  const cells = await cellsOf(ingest);
  const counted = new Set(cells.flatMap((cell) => (cell.repairs > 0 ? [cell.starts_at.getTime()] : [])));
  expect([...counted]).toEqual([first, second]);
  const untouched = (rows: typeof cells) =>
    rows.filter(({ starts_at }) => rest.includes(starts_at.getTime()));
  expect(untouched(cells)).toEqual(untouched(before));
});

test("a cell that matches again is not repaired, even if its hour is not decided yet", async () => {
  const emulator = await openEmulator(SPARSE);
  const { asked, url } = await watchFlat(emulator);
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  emulator.advance(1_000);
  await forget(ingest, `occurred_at < to_timestamp(${(THIS_HOUR - 4 * HOUR_MS) / 1000})`);
  await ingest.reconcile();
  await ingest.repair();
  emulator.advance(1_000);
  await ingest.reconcile();
  const cells = await cellsOf(ingest);
  expect(cells.length).toBeGreaterThan(5);
  expect(cells.filter(({ resolved_at }) => resolved_at === null)).toEqual([]);
  emulator.advance(2 * MINUTE_MS);
  asked.length = 0;
  await ingest.repair();
  expect(asked).toEqual([]);
});
