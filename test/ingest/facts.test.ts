import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { readHashKey, readServerSecret } from "#db/health/server-facts.ts";
import { mergeDoubles } from "#db/ingest/merge-doubles.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { HOUR_MS } from "#lib/units.ts";
import {
  type FactColumns,
  packFacts,
  readRequest,
  toFactColumns,
  UNKNOWN_FACTS,
} from "#model/request-facts.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase, type MigratedDatabase, shareDatabase } from "../db/migrated-database.ts";
import { storeEvents } from "../db/new-events.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { openEmulator, walkDay, YESTERDAY } from "../emulator/support.ts";
import { openIngest, ZONE } from "./ingest-support.ts";

const NOON = Date.UTC(2026, 10, 20, 12);
const KEY = Buffer.alloc(32, 7);

const shared = await shareDatabase();

async function openDatabase(database = shared): Promise<MigratedDatabase> {
  await readServerSecret(database.db, "matched-text", KEY);
  return database;
}

type FactRow = FactColumns & { readonly logId: string; readonly at: number; readonly version: string };

async function readRows({ pool }: MigratedDatabase): Promise<FactRow[]> {
  const { rows } = await pool.query<FactRow>(
    `select log_id as "logId", (extract(epoch from occurred_at) * 1000)::float8 as at, ctid::text as version,
       method, request_id as "requestId", matched_key as "matchedKey", facts
     from waf_events order by occurred_at, log_id`,
  );
  return rows;
}

async function readFacts(database: MigratedDatabase): Promise<(FactColumns & { logId: string })[]> {
  return (await readRows(database)).map(({ at: _at, version: _version, ...facts }) => facts);
}

const bits = (known: Partial<Parameters<typeof packFacts>[0]>) =>
  packFacts({ hasSession: null, hasOwnReferer: null, hasIdiom: null, isTool: null, hasBody: null, ...known });

test("the facts of an event do not depend on which route shows it first, and are those of its records", async () => {
  const emulator = await openEmulator({
    zones: [ZONE],
    // Shortly after midnight, so that yesterday's list has events.
    clock: () => NOON - 10.5 * HOUR_MS,
    historyHours: 3,
    eventsPerSecond: 0.02,
  });
  const bySearch = await openIngest(emulator, { database: await openDatabase(), openHours: 3 });
  const other = await createMigratedDatabase();
  onTestFinished(() => other.drop());
  const byList = await openIngest(emulator, { database: await openDatabase(other), openHours: 3 });

  await bySearch.poll();
  const first = await readFacts(bySearch.database);
  expect(new Set(first.map(({ method }) => method))).toEqual(new Set([null]));
  expect(first.some(({ matchedKey, requestId }) => matchedKey !== null && requestId !== null)).toBe(true);
  await bySearch.walk();
  await byList.walk();
  await byList.poll();

  const found = await readFacts(bySearch.database);
  expect(await readFacts(byList.database)).toEqual(found);
  const shown = (await walkDay(emulator, YESTERDAY)).flatMap(({ logs }) => logs ?? []);
  expect(shown.length).toBeGreaterThan(50);
  const { rows: events } = await bySearch.database.pool.query<Record<"id" | "url" | "ua" | "rule", string>>(
    "select log_id as id, url, ua, rule_id as rule from waf_events",
  );
  for (const entry of shown) {
    const { id, url, ua, rule } = events.find((event) => event.id === entry.logId) ?? {};
    const of = { url: url ?? "", ua: ua ?? "", ruleId: rule ?? "" };
    const read = readRequest(Buffer.from(JSON.stringify(entry)), of, KEY.toString("hex"));
    expect(found.find(({ logId }) => logId === id)).toEqual({ logId: id, ...toFactColumns(read) });
  }
});

test("a row whose facts are known is not written again by any route", async () => {
  const emulator = await openEmulator({ zones: [ZONE], historyHours: 1, eventsPerSecond: 0.02 });
  const ingest = await openIngest(emulator, { database: await openDatabase(), openHours: 1 });
  await ingest.walk();
  await ingest.poll();
  const before = await readRows(ingest.database);
  await ingest.database.pool.query("update pages set hash = ''");
  await ingest.walk();
  await ingest.poll();
  expect(await readRows(ingest.database)).toEqual(before);
});

const event = (logId: string, given: Partial<WafEvent> = {}) =>
  makeEvent({ occurredAt: NOON, logId, feature: "waf", ip: "203.0.113.7", ...given });

async function openStore() {
  const database = await openDatabase();
  await ensurePartitions(database, ["2026-11-20"]);
  const store = (...events: WafEvent[]) => storeEvents(database, ZONE, events, { expectNew: false });
  return { database, store };
}

/** What a later record brings, what it adds, and what was known before. */
type Case = [
  title: string,
  given: Partial<FactColumns>,
  added: Partial<FactColumns>,
  known?: Partial<FactColumns>,
];

const CASES: Case[] = [
  ["nothing", {}, {}],
  ["a method", { method: "POST" }, { method: "POST" }],
  ["another method", { method: "GET" }, {}, { method: "POST" }],
  ["a request id and a key", { requestId: "r1", matchedKey: 0 }, { requestId: "r1", matchedKey: 0 }],
  ["another key", { matchedKey: 5 }, {}, { matchedKey: -5 }],
  [
    "a fact that was unknown",
    { facts: bits({ hasSession: true }) },
    { facts: bits({ hasSession: true, isTool: false }) },
    { facts: bits({ isTool: false }) },
  ],
  [
    "a fact that another record shows",
    { facts: bits({ hasIdiom: true }) },
    { facts: bits({ hasIdiom: true }) },
    { facts: bits({ hasIdiom: false }) },
  ],
  [
    "a fact that another record does not show",
    { facts: bits({ hasIdiom: false }) },
    {},
    { facts: bits({ hasIdiom: true }) },
  ],
];

test.each(CASES)(
  "a later record with %s adds what is unknown, blanks nothing, and makes no minute stale",
  async (_, given, added, known = {}) => {
    const { database, store } = await openStore();
    await store(event("a", known));
    const [before] = await readRows(database);
    await database.pool.query("delete from dirty_buckets");

    expect(await store(event("a", given))).toEqual({ inserted: 0, filled: 0, reopened: [] });

    const [after] = await readRows(database);
    expect(after).toMatchObject({ ...UNKNOWN_FACTS, ...known, ...added });
    expect(after?.version === before?.version).toBe(Object.keys(added).length === 0);
    expect((await database.pool.query("select from dirty_buckets")).rowCount).toBe(0);
  },
);

const KNOWN = { method: "POST", requestId: "r1", matchedKey: 9, facts: bits({ hasBody: true }) };
const LIST = { feature: null, route: "list" } as const;

test.each([
  ["the list's row of another time", event("a"), event("a", { ...LIST, ...KNOWN, occurredAt: NOON + 400 })],
  ["the search's row of another time", event("a", { ...LIST, ...KNOWN, occurredAt: NOON + 400 }), event("a")],
])(
  "an event that is shown under two times keeps the facts of both if %s comes later",
  async (_, one, other) => {
    const { database, store } = await openStore();
    await store(one);
    await store(other);
    expect(await readFacts(database)).toEqual([{ logId: "a", ...KNOWN }]);
    expect((await readRows(database))[0]?.at).toBe(NOON);
  },
);

test("a list row whose event is stored under another time adds its facts there", async () => {
  const { database, store } = await openStore();
  const moved = event("a", { ...LIST, occurredAt: NOON + 400 });
  await store(event("a"));
  await store(moved);
  await store({ ...moved, ...KNOWN });
  expect(await readFacts(database)).toEqual([{ logId: "a", ...KNOWN }]);
});

test("merging two rows of an event keeps the facts of both", async () => {
  const { database, store } = await openStore();
  await store(event("a", { requestId: "r1" }), event("a", { ...LIST, ...KNOWN, occurredAt: NOON + 60_000 }));
  const merged = await inTransaction(database, ({ tx }) => mergeDoubles(tx, ZONE, NOON, NOON + HOUR_MS));
  expect(merged).toEqual([{ logId: "a", keptAt: NOON, otherAt: NOON + 60_000 }]);
  expect(await readFacts(database)).toEqual([{ logId: "a", ...KNOWN }]);
});

test.each(["erased", "anon-74r3l3nd4ia4o-25b2kpscrmniq"])(
  "nothing that leads to a person is added to an event of %s",
  async (ip) => {
    const { database, store } = await openStore();
    await store(event("a", { ip }));
    await store(event("a", KNOWN));
    expect(await readFacts(database)).toEqual([{ logId: "a", ...KNOWN, requestId: null, matchedKey: null }]);
  },
);

test("two replicas that start at once have the same key, which is stored once", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const replicas = Array.from({ length: 4 }, (_, n) =>
    createDatabase({ url: database.url, max: 1, applicationName: `replica-${n}`, onError: () => undefined }),
  );
  onTestFinished(() => Promise.all(replicas.map((replica) => replica.close())).then(() => undefined));
  const keys = await Promise.all(replicas.map(readHashKey));
  expect(new Set(keys).size).toBe(1);
  expect(keys[0]).toMatch(/^[0-9a-f]{64}$/);
  const { rowCount } = await database.pool.query("select from server_secrets where name = 'matched-text'");
  expect(rowCount).toBe(1);
});
