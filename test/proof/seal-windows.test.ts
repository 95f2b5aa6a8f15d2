import { expect, onTestFinished, test, vi } from "vitest";
import { inTransaction } from "#db/postgres/transaction.ts";
import { decideHours, enterHours, lockOpenHours, readCoveredHours } from "#db/proof/covered-hours.ts";
import { recordComparison } from "#db/proof/reconcile.ts";
import { readDueCells } from "#db/proof/rule-cells.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { horizonAt } from "#model/horizon.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { NOW, openEmulator, oracle } from "../emulator/support.ts";
import {
  expectedRows,
  type IngestTest,
  openIngest,
  storedRows,
  withoutRoute,
  ZONE,
} from "../ingest/ingest-support.ts";
import { countStates, hoursOf, isSettled, prove, proveOverAnHour, sealedIds } from "./coverage-support.ts";

const database = await shareDatabase();
const SPARSE = { zones: [ZONE], historyHours: 5, eventsPerSecond: 0.01, lateShare: 0 } as const;
/** The zone was watched before the history began. */
const WATCHED = { database, openHours: 5 } as const;
/** The hours that are sealed before a test begins. */
const SEALED = 73 - WATCHED.openHours;

/** Every verdict with all that must never change, oldest hour first. */
async function decided({ database }: IngestTest) {
  const { rows } = await database.pool.query<{
    at: number;
    state: string;
    reason: string | null;
    evidence: unknown;
  }>(`
    select (extract(epoch from starts_at) * 1000)::float8 as at, state, gap_reason as reason,
      evidence - 'lastProofAt' as evidence, sealed_at,
      upstream_count, missing_cells, surplus_cells, reconciled_at
    from coverage_windows where state <> 'open' order by starts_at`);
  return rows;
}

test("a first start brings every event with every dimension and seals every settled hour in two rounds; the one that had begun to expire is a gap that says so, once the platform has forgotten it", async () => {
  const emulator = await openEmulator({
    ...SPARSE,
    historyHours: 72,
    eventsPerSecond: 0.005,
    lateShare: 0.02,
  });
  const ingest = await openIngest(emulator, { database });
  await prove(emulator, ingest);
  const first = await storedRows(database);
  expect(withoutRoute(first)).toEqual(expectedRows(await oracle(emulator)));
  expect(new Set(first.map(({ route }) => route))).toEqual(new Set(["search"]));
  await prove(emulator, ingest);
  const hours = await hoursOf(ingest);
  const settled = hours.filter((hour) => isSettled(hour, emulator.now()));
  expect(settled).toHaveLength(71);
  expect(settled.filter(({ state }) => state !== "sealed")).toEqual([]);
  expect(await countStates(ingest)).toEqual({ sealed: 71, gap: 0, open: 2 });
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(shown.length).toBeGreaterThan(1_000);
  expect(stored).toEqual(shown);
  emulator.advance(HOUR_MS);
  await ingest.seal();
  const { rows: gaps } = await ingest.database.pool.query(
    "select starts_at, gap_reason, evidence from coverage_windows where state = 'gap'",
  );
  const startsAt = Math.floor((NOW - 72 * HOUR_MS) / HOUR_MS) * HOUR_MS;
  expect(gaps).toEqual([
    {
      starts_at: new Date(startsAt),
      gap_reason: expect.stringContaining("first watched"),
      evidence: expect.objectContaining({ from: new Date(startsAt).toISOString() }),
    },
  ]);
});

test("F56: 80 hours of outage leave exact gap rows, and copying goes on at the oldest hour still served", async () => {
  const emulator = await openEmulator({ ...SPARSE, eventsPerSecond: 0.003 });
  const ingest = await openIngest(emulator, WATCHED);
  await proveOverAnHour(emulator, ingest);
  const before = await decided(ingest);
  emulator.advance(80 * HOUR_MS);
  const back = emulator.now();
  for (let round = 0; round < 2; round++) {
    await prove(emulator, ingest);
    emulator.advance(MINUTE_MS);
  }
  const hours = await hoursOf(ingest);
  const lastSealedBefore = Math.max(...before.filter(({ state }) => state === "sealed").map(({ at }) => at));
  const firstServed = Math.ceil(horizonAt(back) / HOUR_MS) * HOUR_MS;
  const gaps = hours.filter(({ state, startsAt }) => state === "gap" && startsAt > lastSealedBefore);
  const expected: number[] = [];
  for (let at = lastSealedBefore + HOUR_MS; at + HOUR_MS < firstServed; at += HOUR_MS) expected.push(at);
  expect(gaps.map(({ startsAt }) => startsAt)).toEqual(expected);
  expect(gaps).toHaveLength(8);
  const settled = hours.filter(
    ({ startsAt }) => startsAt >= firstServed && startsAt + 75 * MINUTE_MS <= back,
  );
  expect(settled).toHaveLength(71);
  expect(settled.filter(({ state }) => state !== "sealed")).toEqual([]);
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(stored).toEqual(shown);

  const rows = await decided(ingest);
  const known = new Set(before.map(({ at }) => at));
  expect(rows.filter(({ at }) => known.has(at))).toEqual(before);
  const reasons = rows.flatMap(({ at, reason }) => (expected.includes(at) ? [reason] : []));
  expect(reasons).toEqual([
    "The search had reached only 2026-11-20T16:31:12.000Z when the platform forgot the events.",
    ...Array.from({ length: 7 }, () => "No search was made before the platform forgot the events."),
  ]);
  const partly = hours.find(({ startsAt }) => startsAt === firstServed - HOUR_MS);
  expect(partly).toMatchObject({ state: "open", searchedThrough: firstServed });
  expect(partly?.storedCount).toBeGreaterThan(0);
});

test("the first hours of a zone that the platform refuses become gaps as well, one after the other", async () => {
  const emulator = await openEmulator(SPARSE);
  emulator.addFault({ kind: "status", status: 403, operation: "any" });
  const ingest = await openIngest(emulator, { database });
  await expect(ingest.poll()).rejects.toBeInstanceOf(EdgeError);
  await ingest.seal();
  expect(await countStates(ingest)).toEqual({ open: 72, gap: 0, sealed: 0 });
  emulator.advance(5 * HOUR_MS);
  await ingest.seal();
  expect(await countStates(ingest)).toEqual({ open: 72, gap: 5, sealed: 0 });
});

test("late events before the seal change their hour: it is sealed with them, after both routes were read again", async () => {
  const emulator = await openEmulator(SPARSE);
  const ingest = await openIngest(emulator, WATCHED);
  const hour = NOW - (NOW % HOUR_MS) - HOUR_MS;
  await ingest.poll();
  emulator.advance(1_000);
  await ingest.walk();
  const late = new Date(hour + 10 * MINUTE_MS).toISOString();
  emulator.advance(1_000);
  emulator.addAttack(`zone=${ZONE},rule=942100,start=${late},duration=1m,rate=1/s`);
  await ingest.reconcile();
  await ingest.seal();
  const lacking = (await hoursOf(ingest)).find(({ startsAt }) => startsAt === hour);
  expect(lacking).toMatchObject({ state: "open" });
  expect(lacking?.missingCells).toBeGreaterThan(0);
  emulator.advance(1_000);
  await ingest.repair();
  emulator.advance(1_000);
  await ingest.reconcile();
  await ingest.seal();
  expect((await hoursOf(ingest)).find(({ startsAt }) => startsAt === hour)?.state).toBe("open");
  emulator.advance(16 * MINUTE_MS);
  await prove(emulator, ingest);
  const sealed = (await hoursOf(ingest)).find(({ startsAt }) => startsAt === hour);
  expect(sealed).toMatchObject({ state: "sealed", missingCells: 0 });
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(stored).toEqual(shown);
});

test("I4 I5: what is sealed or a gap never changes, whatever runs beside it and is replayed after it", async () => {
  const emulator = await openEmulator({ ...SPARSE, lateShare: 0.2 });
  const first = await openIngest(emulator, WATCHED);
  const second = await openIngest(emulator, { database: first.database });
  const seen = new Map<number, string>();
  for (let round = 0; round < 8; round++) {
    const jobs = [first, second].flatMap((one) => [one.poll, one.walk, one.reconcile, one.repair, one.seal]);
    const results = await Promise.allSettled(jobs.map((job) => job()));
    expect(results.filter(({ status }) => status === "rejected")).toEqual([]);
    for (const row of await decided(first)) {
      const verdict = JSON.stringify(row);
      expect(seen.get(row.at) ?? verdict).toBe(verdict);
      seen.set(row.at, verdict);
    }
    emulator.advance(round % 2 === 0 ? MINUTE_MS : 16 * MINUTE_MS);
  }
  expect(seen.size).toBeGreaterThan(SEALED + 4);
  const target = [...seen.keys()][SEALED + 1] ?? 0;
  const again = { startsAt: target, state: "gap", reason: "changed", evidence: {}, looks: null } as const;
  expect(await decideHours(first.database.db, ZONE, [again], emulator.now())).toBe(0);
  await recordComparison(
    first.database.db,
    ZONE,
    [{ startsAt: target, upstreamCount: 0, storedCount: 0, counterBefore: 0, repairAt: 0, differing: [] }],
    emulator.now(),
  );
  const rows = await decided(first);
  expect(JSON.stringify(rows.find(({ at }) => at === target))).toBe(seen.get(target));
  const { stored, shown } = await sealedIds(emulator, first);
  expect(stored).toEqual(shown);
});

test("an event that comes after the seal reopens its hour, which is sealed again with both seals in its history", async () => {
  const emulator = await openEmulator(SPARSE);
  const ingest = await openIngest(emulator, WATCHED);
  await prove(emulator, ingest);
  await prove(emulator, ingest);
  const hour = NOW - (NOW % HOUR_MS) - HOUR_MS;
  const before = (await decided(ingest)).find(({ at }) => at === hour);
  expect(before).toMatchObject({ state: "sealed" });
  const late = new Date(hour + 10 * MINUTE_MS).toISOString();
  emulator.addAttack(`zone=${ZONE},rule=942100,start=${late},duration=1m,rate=1/s`);
  emulator.advance(16 * MINUTE_MS);
  await ingest.walk();
  const reopened = (await hoursOf(ingest)).find(({ startsAt }) => startsAt === hour);
  expect(reopened).toMatchObject({
    state: "open",
    reopenedAt: NOW + 16 * MINUTE_MS + 12_000,
    reopenReason: "An event was stored after the seal.",
  });
  emulator.advance(1_000);
  await prove(emulator, ingest);
  emulator.advance(6 * MINUTE_MS);
  await prove(emulator, ingest);
  const after = (await decided(ingest)).find(({ at }) => at === hour);
  expect(after).toMatchObject({ state: "sealed" });
  expect(after?.evidence).toMatchObject({
    stored: { count: reopened?.storedCount },
    history: [
      { event: "sealed", ...(before?.evidence as object) },
      { event: "reopened", reason: "An event was stored after the seal." },
    ],
  });
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(stored).toEqual(shown);
});

test("F8: a replica whose clock is behind or ahead seals nothing that has not settled", async () => {
  const emulator = await openEmulator({ ...SPARSE, lateShare: 0.3 });
  const ingest = await openIngest(emulator, WATCHED);
  for (let round = 0; round < 6; round++) {
    await prove(emulator, ingest);
    emulator.advance(round % 3 === 2 ? -4 * MINUTE_MS : 7 * MINUTE_MS);
  }
  emulator.advance(60 * MINUTE_MS);
  await prove(emulator, ingest);
  await prove(emulator, ingest);
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(stored).toEqual(shown);
});

test("F30: a seal whose connection is cut in the middle decides nothing, and the next one everything", async () => {
  const emulator = await openEmulator(SPARSE);
  const ingest = await openIngest(emulator, WATCHED);
  await ingest.seal();
  for (const job of [ingest.poll, ingest.walk, ingest.reconcile]) {
    await job();
    emulator.advance(1_000);
  }
  const before = await decided(ingest);
  const holder = await ingest.database.pool.connect();
  await holder.query("begin");
  await holder.query("select from coverage_windows where state = 'open' for update");
  onTestFinished(() => holder.release(true));
  const sealing = ingest.seal().catch((thrown: unknown) => thrown);
  const cut = async () => {
    const { rows } = await ingest.database.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    expect(rows).toHaveLength(1);
  };
  await vi.waitFor(cut, { timeout: 10_000 });
  expect(await sealing).toBeInstanceOf(Error);
  await holder.query("rollback");
  expect(await decided(ingest)).toEqual(before);
  await ingest.seal();
  expect((await countStates(ingest))["sealed"]).toBeGreaterThan(3);
});

/** An open hour, or a gap, without evidence, so many hours from that of NOW. */
async function enter(
  { database }: Pick<IngestTest, "database">,
  hour: number,
  { zoneId = ZONE, state = "open" } = {},
) {
  await database.pool.query(
    `insert into coverage_windows (zone_id, starts_at, state, gap_reason, sealed_at, evidence)
     select $1, to_timestamp($2), $3, g.reason, g.at, g.evidence
     from (select) one left join (values ('lost', now(), '{}'::jsonb)) as g(reason, at, evidence) on $3 = 'gap'`,
    [zoneId, (startOf(NOW) + hour * HOUR_MS) / 1_000, state],
  );
}

const startOf = (ms: number) => ms - (ms % HOUR_MS);

test("the hours that are judged are the zone's own that ended undecided, oldest first, and nothing is stored into them meanwhile", async () => {
  const ingest = { database };
  for (const hour of [-2, -5, -3, 0]) await enter(ingest, hour);
  await enter(ingest, -4, { state: "gap" });
  await enter(ingest, -3, { zoneId: 102 });
  const { pool } = ingest.database;
  const isFree = async (zoneId: number, hour: number) => {
    const { rowCount } = await pool.query(
      "select from coverage_windows where zone_id = $1 and starts_at = to_timestamp($2) for no key update skip locked",
      [zoneId, (startOf(NOW) + hour * HOUR_MS) / 1_000],
    );
    return rowCount === 1;
  };
  await inTransaction(ingest.database, async ({ tx }) => {
    const hours = await lockOpenHours(tx, ZONE, startOf(NOW));
    expect(hours.map(({ startsAt }) => (startsAt - startOf(NOW)) / HOUR_MS)).toEqual([-5, -3, -2]);
    for (const hour of [-5, -3, -2]) expect(await isFree(ZONE, hour)).toBe(false);
    for (const [zoneId, hour] of [
      [ZONE, 0],
      [ZONE, -4],
      [102, -3],
    ] as const)
      expect(await isFree(zoneId, hour)).toBe(true);
  });
});

test("the hours of a zone begin when it was first watched, or at the horizon before any hour is decided", async () => {
  const ingest = { database };
  const span = { fromMs: startOf(NOW) - 6 * HOUR_MS, toMs: startOf(NOW) };
  const entered = async () =>
    (await hoursOf(ingest)).map(({ startsAt }) => (startsAt - startOf(NOW)) / HOUR_MS);
  await enter(ingest, -9, { zoneId: 102 });
  await enter(ingest, -3, { zoneId: 102 });
  await enter(ingest, -2);
  expect(await enterHours(ingest.database.db, ZONE, span)).toBe(span.fromMs);
  expect(await entered()).toEqual([-6, -5, -4, -3, -2, -1]);

  await ingest.database.pool.query("delete from coverage_windows where zone_id = $1", [ZONE]);
  await enter(ingest, -4, { state: "gap" });
  await enter(ingest, -2);
  expect(await enterHours(ingest.database.db, ZONE, span)).toBe(startOf(NOW) - 4 * HOUR_MS);
  expect(await entered()).toEqual([-4, -3, -2, -1]);
});

test("the hours of a span are those that begin in it, oldest first, of that zone alone", async () => {
  const ingest = { database };
  for (const hour of [-1, -4, -2, -3]) await enter(ingest, hour);
  await enter(ingest, -2, { zoneId: 102 });
  const span = { fromMs: startOf(NOW) - 3 * HOUR_MS, toMs: startOf(NOW) - HOUR_MS };
  const hours = await readCoveredHours(ingest.database.db, ZONE, span);
  expect(hours.map(({ startsAt }) => (startsAt - startOf(NOW)) / HOUR_MS)).toEqual([-3, -2]);
});

test("comparing and deciding one zone leaves another zone's hours, cells and counts unchanged", async () => {
  const emulator = await openEmulator(SPARSE);
  const ingest = await openIngest(emulator, WATCHED);
  const { pool } = ingest.database;
  await ingest.poll();
  await pool.query(
    `insert into waf_events select (jsonb_populate_record(e, '{"zone_id": 102}')).* from waf_events e`,
  );
  await pool.query(
    `insert into coverage_windows select (jsonb_populate_record(w, '{"zone_id": 102}')).* from coverage_windows w`,
  );
  await pool.query(
    `insert into differing_cells
       (zone_id, starts_at, rule_id, upstream_count, stored_count, first_seen_at, last_seen_at, next_repair_at)
     select 102, starts_at, '942100', 9, 1, starts_at, starts_at, starts_at from coverage_windows where zone_id = 102`,
  );
  const others = async () => [
    (await pool.query("select * from coverage_windows where zone_id = 102 order by starts_at")).rows,
    (await pool.query("select * from differing_cells where zone_id = 102 order by starts_at")).rows,
  ];
  const before = await others();
  const due = { nowMs: NOW, horizonMs: 0 };
  expect(await readDueCells(ingest.database.db, ZONE, due)).toEqual([]);
  expect(await readDueCells(ingest.database.db, 102, due)).toHaveLength(6);
  emulator.advance(1_000);
  await proveOverAnHour(emulator, ingest);
  expect(await countStates(ingest)).toEqual({ sealed: SEALED + 6, gap: 0, open: 1 });
  expect(await others()).toEqual(before);
  expect(before.map((rows) => rows.length)).toEqual([SEALED + 6, SEALED + 6]);
});
