import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { MergedDouble } from "#db/ingest/merge-doubles.ts";
import { storePage } from "#db/ingest/store-page.ts";
import { eraseMergedRecords } from "#db/people/erase-events.ts";
import { acquireLease } from "#db/postgres/leases.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { createEraseLeftoversJob } from "#jobs/people/pseudonymise-ips.ts";
import { openRawBlock, packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey, type WafEvent } from "#model/waf-event.ts";
import { eraseAddress } from "#people/privacy/erase-address.ts";
import { recordEraser } from "#people/rules/erasure-guard.ts";
import { singleAddress } from "#people/rules/erasure-target.ts";
import { insertSpike } from "../alerts/insert-spike.ts";
import { EVIDENCE } from "../alerts/support.ts";
import { createMigratedDatabase, type MigratedDatabase, WAITS_HERE } from "../db/migrated-database.ts";
import { environment, GUARD, KEY } from "./erasure-world.ts";
import { insertMany, personalEvent } from "./some-events.ts";

const NOON = Date.UTC(2026, 10, 20, 12);
const PERSON = "203.0.113.7";
const ZONE = 101;
const never = new AbortController().signal;
let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
  await ensurePartitions(database, ["2026-11-20"]);
});

afterEach(() => database.drop());

function rawOf({ logId, occurredAt }: WafEvent) {
  const raw = JSON.stringify({ logId, timestamp: occurredAt, log: '{"Url":"/me"}', labels: { ruleId: "1" } });
  return { occurredAt, logIdHash: hashEventKey({ logId, occurredAt }), raw: Buffer.from(raw) };
}

/** A page as ingest stores it; its transaction stays open until `mayCommit`. */
async function store(
  events: readonly WafEvent[],
  { expectNew = true, withRecords = false, mayCommit = Promise.resolve(), onStored = () => {} } = {},
) {
  const name = `test.${Math.random()}`;
  const fence = await acquireLease(database.db, { name, holder: name, ttlMs: 600_000 });
  const page = {
    zoneId: ZONE,
    lease: { name, fence: fence ?? 0 },
    events,
    expectNew,
    storedAt: NOON,
    quarantined: [],
    rawBlocks: withRecords ? await packRawBlocks(events.map(rawOf)) : [],
    erasures: GUARD,
  };
  return storePage(database, page, async () => {
    onStored();
    await mayCommit;
  });
}

function erase(options: { signal?: AbortSignal; onProgress?: () => void; untilAt?: number } = {}) {
  const asked = {
    network: singleAddress(PERSON) as never,
    zoneId: null,
    includeMasked: false,
    untilAt: options.untilAt ?? NOON,
  };
  const deps = {
    database,
    key: KEY,
    clock: () => NOON,
    ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
  };
  return eraseAddress(deps, asked, { actor: "test", reason: null }, options.signal ?? never);
}

async function personal(): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(
    `select count(*)::integer as n from waf_events where ip = $1 or url <> '' or ua <> '' or message <> '' or ja4 <> ''
       or request_id <> '' or matched_key is not null`,
    [PERSON],
  );
  return rows[0]?.n ?? -1;
}

async function records(): Promise<string[]> {
  const { rows } = await database.pool.query<{ block: Buffer }>("select block from raw_blocks");
  return (await Promise.all(rows.map(({ block }) => openRawBlock(block)))).flat().map(String);
}

/** Until a session waits for the lock that the other holds. */
async function untilWaiting(): Promise<void> {
  await vi.waitFor(async () => {
    const { rowCount } = await database.pool.query(`select from ${WAITS_HERE} and locktype = 'advisory'`);
    expect(rowCount).toBe(1);
  });
}

test.each([true, false])(
  "an erasure that comes while a page of the address is being stored finds it (expectNew %s)",
  async (expectNew) => {
    const gate = Promise.withResolvers<void>();
    const inside = Promise.withResolvers<void>();
    const storing = store([personalEvent("a", NOON - 5, PERSON)], {
      expectNew,
      withRecords: true,
      mayCommit: gate.promise,
      onStored: inside.resolve,
    });
    await inside.promise;
    const erasing = erase();
    await untilWaiting();
    gate.resolve();
    await storing;
    expect((await erasing).counts).toMatchObject({ events: 1, records: 1 });
    expect(await personal()).toBe(0);
    expect(await records()).toEqual([expect.stringContaining('"log":"{}"')]);
  },
);

test("a page that comes while the tombstone is being laid waits, and is then kept out", async () => {
  const blocker = await database.pool.connect();
  await blocker.query("begin; lock table audit_entries in exclusive mode");
  const erasing = erase();
  await vi.waitFor(async () => {
    const { rowCount } = await database.pool.query(`select from ${WAITS_HERE}`);
    expect(rowCount).toBeGreaterThan(0);
  });
  const storing = store([personalEvent("a", NOON - 5, PERSON)]);
  await untilWaiting();
  await blocker.query("commit");
  blocker.release();
  await Promise.all([erasing, storing]);
  expect(await personal()).toBe(0);
});

test("a list page stored between the tombstone and the erasure's arrival at its event leaves no record behind", async () => {
  await store([personalEvent("a", NOON - 5, PERSON)]);
  const masked = personalEvent("a", NOON - 5, "203.0.113.*", { route: "list" });
  const stopped = new AbortController();
  // Killed right behind the tombstone: the page comes before anything of it was erased.
  await expect(
    erase({
      signal: stopped.signal,
      onProgress: () => stopped.abort(new Error("killed")),
    }),
  ).rejects.toThrow("killed");
  expect(await personal()).toBe(1);
  await store([masked], { expectNew: false, withRecords: true });
  expect(await personal()).toBe(0);
  expect(await records()).toEqual([expect.stringContaining('"log":"{}"')]);
  const { isResumed, counts } = await erase();
  // Ingest did it, for this erasure.
  expect({ isResumed, events: counts.events }).toEqual({ isResumed: true, events: 1 });
});

const AT = NOON - 60_000;
const listed = () => personalEvent("a", AT + 400, "203.0.113.*", { route: "list", feature: null, ja4: null });

test("an erasure empties the record that is kept under the event's second time", async () => {
  await store([listed()], { withRecords: true });
  await store([personalEvent("a", AT, PERSON)], { expectNew: false });
  expect((await erase()).counts).toMatchObject({ events: 1, records: 1 });
  expect(await records()).toEqual([expect.stringContaining('"log":"{}"')]);
});

test.each([NOON, AT])(
  "a list page that shows an erased event under its second time stores its record empty (erased until %s)",
  async (untilAt) => {
    await store([personalEvent("a", AT, PERSON)]);
    await erase({ untilAt });
    for (const _ of ["new alias", "known alias"])
      await store([listed()], { expectNew: false, withRecords: true });
    expect(await records()).toEqual(Array(2).fill(expect.stringContaining('"log":"{}"')));
  },
);

test("merging the two times of an erased event empties the record that is kept under the other time", async () => {
  const other = AT - 300_000;
  await store([personalEvent("a", AT, PERSON)]);
  await store([{ ...listed(), occurredAt: other }], { expectNew: false, withRecords: true });
  await erase();
  expect(await records()).toEqual([expect.stringContaining("/me")]);
  const empty = (double: MergedDouble) => eraseMergedRecords(database.db, ZONE, [double], recordEraser);
  await empty({ logId: "a", keptAt: other, otherAt: other });
  expect(await records()).toEqual([expect.stringContaining("/me")]);
  await empty({ logId: "a", keptAt: AT, otherAt: other });
  expect(await records()).toEqual([expect.stringContaining('"log":"{}"')]);
});

test("the receipt counts events that ingest emptied during the erasure, also of a page that is still being stored at its end", async () => {
  await store([personalEvent("a", NOON - 5, PERSON)], { withRecords: true });
  const blocker = await database.pool.connect();
  await blocker.query("begin; lock table silences in exclusive mode");
  const erasing = erase();
  // The events have been gone through, notes are not.
  await vi.waitFor(async () => {
    expect(await personal()).toBe(0);
    const { rowCount } = await database.pool.query(
      `select from ${WAITS_HERE} and relation = 'silences'::regclass`,
    );
    expect(rowCount).toBe(1);
  });
  const [gate, inside] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const late = [personalEvent("b", NOON - 4, PERSON), personalEvent("c", NOON - 3, "198.51.100.1")];
  const storing = store(late, { expectNew: false, mayCommit: gate.promise, onStored: inside.resolve });
  await inside.promise;
  await blocker.query("commit");
  blocker.release();
  await untilWaiting();
  gate.resolve();
  const [{ counts }] = await Promise.all([erasing, storing]);

  expect(counts).toMatchObject({ events: 2, records: 1 });
  const { rows } = await database.pool.query("select from waf_events where ip = 'erased'");
  expect(rows).toHaveLength(counts.events);
});

test("events that ingest refuses after the end of an erasure are not in its receipt", async () => {
  await erase();
  await store([personalEvent("a", NOON - 5, PERSON)], { expectNew: false });
  const { rows } = await database.pool.query<{ counts: { events: number } }>("select counts from erasures");
  expect(rows.map(({ counts }) => counts.events)).toEqual([0]);
});

test("later events of the address are new data, earlier ones of others are left alone", async () => {
  await erase();
  await store([
    personalEvent("before", NOON, PERSON),
    personalEvent("after", NOON + 1, PERSON),
    personalEvent("other", NOON - 5, "203.0.113.8"),
  ]);
  const { rows } = await database.pool.query(
    "select log_id, ip, url <> '' as whole from waf_events order by log_id",
  );
  expect(rows).toEqual([
    { log_id: "after", ip: PERSON, whole: true },
    { log_id: "before", ip: "erased", whole: false },
    { log_id: "other", ip: "203.0.113.8", whole: true },
  ]);
  const { rows: hours } = await database.pool.query(
    "select sum(stored_count)::integer as n from coverage_windows",
  );
  expect(hours).toEqual([{ n: 3 }]);
});

test("a page that may hold erased data is refused without an erasure guard", async () => {
  await erase();
  const page = {
    lease: { name: "x", fence: 1 },
    zoneId: ZONE,
    expectNew: true,
    storedAt: NOON,
    quarantined: [],
    rawBlocks: [],
  };
  const events = [personalEvent("a", NOON - 1, "198.51.100.1")];
  await expect(storePage(database, { ...page, events }, async () => undefined)).rejects.toThrow(
    "no erasure guard was given",
  );
});

test("an unreadable entry that names the address is emptied on its way in, once however often it comes", async () => {
  await erase();
  const raw = Buffer.from(`{"RemoteIp":"${PERSON}"`);
  const harmless = Buffer.from('{"RemoteIp":"198.51.100.1"');
  const name = "test.quarantine";
  const fence = (await acquireLease(database.db, { name, holder: name, ttlMs: 60_000 })) ?? 0;
  const entry = (bytes: Buffer) => ({ route: "list" as const, day: "2026-11-20", reason: "x", raw: bytes });
  const page = {
    zoneId: ZONE,
    lease: { name, fence },
    events: [],
    expectNew: false,
    storedAt: NOON,
    rawBlocks: [],
    quarantined: [entry(raw), entry(harmless)],
    erasures: GUARD,
  };
  const { stored } = await storePage(database, page, async () => undefined);
  expect(stored.quarantined).toBe(2);
  expect((await storePage(database, page, async () => undefined)).stored.quarantined).toBe(0);
  const { rows } = await database.pool.query<{ raw: Buffer }>(
    "select raw from quarantined_entries order by id",
  );
  expect(rows.map(({ raw }) => String(raw))).toEqual([
    expect.stringMatching(/^\{"erased":/),
    String(harmless),
  ]);
});

test("evidence that was collected before an erasure and written after it is emptied by the next round", async () => {
  await erase();
  const spike = (from: number) => ({
    openedAt: new Date(from),
    judgedThrough: new Date(NOON + 3 * 3_600_000),
    evidence: {
      ...EVIDENCE,
      from: new Date(from).toISOString(),
      to: new Date(from + 60_000).toISOString(),
      firstEventAt: null,
      lastEventAt: null,
      top: { ...EVIDENCE.top, ip: [{ value: PERSON, count: 1, share: 1 }] },
    },
  });
  await insertSpike(database.db, { ...spike(NOON - 600_000), ruleId: "1" } as never);
  await insertSpike(database.db, { ...spike(NOON + 3_600_000), ruleId: "2" } as never);
  const round = (now: number) =>
    createEraseLeftoversJob({ database, clock: () => now, erasures: GUARD }).run({} as never, never);
  await Promise.all([round(NOON + 4 * 3_600_000), round(NOON + 4 * 3_600_000)]);
  const { rows } = await database.pool.query(
    "select rule_id, evidence #>> '{top,ip,0,value}' as ip from spikes order by rule_id",
  );
  expect(rows).toEqual([
    { rule_id: "1", ip: "erased" },
    { rule_id: "2", ip: PERSON },
  ]);
});

test("killed in the middle, the same command goes on; two at once erase nothing twice", async () => {
  const count = 10_000;
  await insertMany(database, {
    zoneId: ZONE,
    from: NOON - 12 * 3_600_000,
    count,
    ips: [PERSON, "198.51.100.1"],
  });
  const program = fileURLToPath(new URL("./erase-process.ts", import.meta.url));
  const until = ["--ip", PERSON, "--yes", "--until", "2026-11-20T23:59:59", "--json"];
  const start = () => {
    const child = fork(program, [JSON.stringify(environment(database)), String(NOON), ...until]);
    onTestFinished(() => void child.kill("SIGKILL"));
    return child;
  };
  const holder = new pg.Client({ connectionString: database.url });
  onTestFinished(() => holder.end());
  holder.on("error", () => undefined);
  await holder.connect();
  // It cannot come past the last event, however late it is killed.
  await holder.query(
    `begin; select from waf_events where ip = '${PERSON}' order by occurred_at desc limit 1 for update`,
  );
  const first = start();
  await vi.waitFor(
    async () => {
      const { rows } = await database.pool.query<{ n: number }>(
        "select (counts ->> 'events')::integer as n from erasures",
      );
      expect(rows[0]?.n).toBeGreaterThan(0);
    },
    { timeout: 20_000, interval: 5 },
  );
  first.kill("SIGKILL");
  await once(first, "exit");
  await holder.query("rollback");
  // Its last statement may still run.
  await vi.waitFor(async () => {
    const { rowCount } = await database.pool.query(
      "select from pg_stat_activity where datname = current_database() and application_name = 'longwatch command'",
    );
    expect(rowCount).toBe(0);
  });
  const { rows: half } = await database.pool.query<{ ended: Date | null; n: number }>(
    "select ended_at as ended, (counts ->> 'events')::integer as n from erasures",
  );
  expect(half[0]?.ended).toBeNull();
  expect(half[0]?.n).toBeLessThan(count / 2);
  expect(half[0]?.n).toBe(await erasedRows());

  // None ends before both have begun.
  await holder.query("begin; lock table waf_events in exclusive mode");
  const both = [start(), start()].map((child) => once(child, "message"));
  await vi.waitFor(async () => {
    const { rowCount } = await database.pool.query(
      "select from audit_entries where action = 'erasure.resumed'",
    );
    expect(rowCount).toBe(2);
  });
  await holder.query("rollback");
  const ran = await Promise.all(both);
  for (const [message] of ran as [{ code: number; out: string }][]) expect(message.code).toBe(0);
  expect(await erasedRows()).toBe(count / 2);
  const { rows } = await database.pool.query<{ n: number }>(
    "select (counts ->> 'events')::integer as n from erasures",
  );
  expect(rows).toEqual([{ n: count / 2 }]);
  const { rows: acts } = await database.pool.query<{ action: string }>(
    "select action from audit_entries where action like 'erasure.re%' order by id",
  );
  expect(acts.map(({ action }) => action).slice(0, 2)).toEqual(["erasure.requested", "erasure.resumed"]);
});

async function erasedRows(): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(
    "select count(*)::integer as n from waf_events where ip = 'erased'",
  );
  return rows[0]?.n ?? -1;
}
