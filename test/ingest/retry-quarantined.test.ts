import { sql } from "drizzle-orm";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { createDatabase, type Database } from "#db/client.ts";
import { setReasons } from "#db/ingest/quarantine.ts";
import { createPartitionKeeper, ensurePartitions } from "#db/postgres/partitions.ts";
import { HELD_BACK } from "#ingest/rules/read-page.ts";
import { retryQuarantined } from "#jobs/ingest/retry-quarantined.ts";
import { openRawBlock } from "#model/raw-block.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { storeEvents } from "../db/new-events.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { NOW } from "../emulator/support.ts";

const ZONE = 101;
const AT = NOW - 60_000;
const DAY = new Date(AT).toISOString().slice(0, 10);
const RECORD = {
  Message: "Path probe blocked",
  Url: "https://shop.example.test/.git/config",
  RemoteIp: "203.0.113.*",
  Headers: [
    { name: "user-agent", value: "probe/2.1" },
    { name: "cdn-requestid", value: "0d5b" },
  ],
  TriggerMatch: [{ Key: "ARGS:q", Value: "/.git/" }],
};
const LABELS = { asn: "64500", country: "NL", ruleId: "930130", method: "GET", status: "Blocked" };
const toEntry = (logId: string, changed: object = {}) =>
  JSON.stringify({ logId, timestamp: AT, log: JSON.stringify(RECORD), labels: LABELS, ...changed });

let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
});

interface Row {
  readonly raw: string;
  readonly route?: "list" | "search";
  readonly reason?: string;
  readonly isHeld?: boolean;
}

async function quarantine(rows: readonly Row[]): Promise<void> {
  for (const { raw, route = "list", reason = "unreadable: an earlier version", isHeld = false } of rows)
    await database.pool.query(
      `insert into quarantined_entries (zone_id, route, day, reason, raw, is_held, received_at)
       values ($1, $2, $3, $4, $5, $6, $7)`,
      [ZONE, route, route === "list" ? DAY : null, reason, Buffer.from(raw), isHeld, new Date(NOW)],
    );
}

type Note = Parameters<typeof retryQuarantined>[1]["note"];

const retry = (note: Note = async () => undefined, on: Database = database) =>
  retryQuarantined(
    { database: on, partitions: createPartitionKeeper(on), clock: () => NOW },
    { zoneId: ZONE, ids: null, note },
    new AbortController().signal,
  );

async function left() {
  const { rows } = await database.pool.query<{ id: number; reason: string }>(
    "select id::integer, reason from quarantined_entries order by id",
  );
  return rows;
}

async function stored() {
  const { rows } = await database.pool.query(
    `select (extract(epoch from occurred_at) * 1000)::float8 as at, log_id, route, rule_id, ip, url, ua, action, message,
       method, request_id, matched_key is not null as "hasMatch" from waf_events order by log_id`,
  );
  return rows;
}

const EVENT = {
  at: AT,
  rule_id: "930130",
  url: RECORD.Url,
  ua: "probe/2.1",
  action: "block",
  message: "Path probe blocked",
  request_id: "0d5b",
  hasMatch: true,
};

test("entries that this version reads are stored with their records, and leave the quarantine", async () => {
  const fields = {
    feature: "waf",
    ruleId: "930130",
    ip: "203.0.113.7",
    ua: "probe/2.1",
    url: RECORD.Url,
    action: "block",
  };
  const raws = [
    toEntry("a", { timestamp: AT + 0.25 }),
    toEntry("b", { timestamp: AT / 1_000 }),
    toEntry("c", { log: RECORD }),
  ];
  const row = JSON.stringify({ logId: "d", timestamp: AT + 0.5, log: JSON.stringify(RECORD), fields });
  await quarantine([...raws.map((raw) => ({ raw })), { raw: row, route: "search" }]);

  expect(await retry()).toEqual({ stored: 4, kept: [] });

  const ofList = { ...EVENT, route: "list", method: "GET", ip: "203.0.113.*" };
  expect(await stored()).toEqual([
    ...["a", "b", "c"].map((log_id) => ({ ...ofList, log_id })),
    { ...EVENT, log_id: "d", route: "search", method: null, ip: "203.0.113.7" },
  ]);
  expect(await left()).toEqual([]);
  // The list still shows the day, so that it will bring the record of the row.
  const { rows } = await database.pool.query<{ block: Buffer }>("select block from raw_blocks");
  const records = await Promise.all(rows.map(({ block }) => openRawBlock(block)));
  expect(records.flat().map(String).sort()).toEqual(raws.toSorted());
});

test("an entry that still cannot be stored stays, with the reason of today", async () => {
  await quarantine([
    { raw: toEntry("", {}) },
    { raw: "\xff\0 no JSON" },
    { raw: toEntry("x", { timestamp: AT - 3 * 86_400_000 }) },
    { raw: toEntry("y", { timestamp: AT - 30 * 86_400_000 }) },
  ]);
  const reasons = [
    "unreadable: logId: too_small",
    "unreadable: entry: invalid_type",
    "timestamp: outside the day of its list",
    expect.stringMatching(/^timestamp: before 2026-/),
  ];
  const kept = reasons.map((reason, place) => ({ id: place + 1, reason }));
  expect(await retry()).toEqual({ stored: 0, kept });
  expect(await left()).toEqual(kept);
  expect(await stored()).toEqual([]);
});

test("an imported row that still cannot be read keeps the number of its line", async () => {
  await quarantine([{ raw: "no JSON", route: "search", reason: "unreadable: of before; imported, line 6" }]);
  const reason = "unreadable: entry: invalid_type; imported, line 6";
  expect(await retry()).toEqual({ stored: 0, kept: [{ id: 1, reason }] });
  expect(await left()).toEqual([{ id: 1, reason }]);
});

test("setReasons leaves an entry that was erased after it was read", async () => {
  await quarantine([{ raw: '{"erased":"0a"}', reason: "fields.erased: bad" }]);
  const set = (raw: string) =>
    setReasons(database.db, [{ id: 1, raw: Buffer.from(raw), reason: "fields.203.0.113.7: bad" }]);
  await set('{"fields":{"203.0.113.7":1}}');
  expect(await left()).toEqual([{ id: 1, reason: "fields.erased: bad" }]);
  await set('{"erased":"0a"}');
  expect(await left()).toEqual([{ id: 1, reason: "fields.203.0.113.7: bad" }]);
});

test("a held entry and one of an answer that was held back are not read", async () => {
  await quarantine([
    { raw: toEntry("a"), isHeld: true },
    { raw: toEntry("b"), reason: HELD_BACK },
  ]);
  expect(await retry()).toEqual({ stored: 0, kept: [] });
  expect(await left()).toHaveLength(2);
  expect(await stored()).toEqual([]);
});

test("entries are stored once, however often and by however many processes they are read again", async () => {
  const logIds = Array.from({ length: 250 }, (_, number) => `id-${number}`);
  await quarantine(logIds.map((logId) => ({ raw: toEntry(logId) })));
  await ensurePartitions(database, [DAY]);
  await storeEvents(database, ZONE, [makeEvent({ occurredAt: AT, logId: "id-7", route: "list" })], {
    expectNew: false,
  });
  const other = createDatabase({
    url: database.url,
    max: 2,
    applicationName: "other",
    onError: () => undefined,
  });
  onTestFinished(() => other.close());
  const retried = await Promise.all([retry(), retry(undefined, other), retry(), retry(undefined, other)]);
  const done = retried.filter((one) => one !== null);
  expect(done.reduce((sum, one) => sum + one.stored, 0)).toBe(250);
  expect(done.flatMap(({ kept }) => kept)).toEqual([]);
  expect(await retry()).toEqual({ stored: 0, kept: [] });
  await quarantine([{ raw: toEntry("id-3") }]);
  expect(await retry()).toMatchObject({ stored: 1 });
  expect((await stored()).map(({ log_id }) => log_id)).toEqual(logIds.toSorted());
  expect(await left()).toEqual([]);
});

test("a retry that loses its connection in the middle keeps the rest, and the next one stores it", async () => {
  await quarantine(Array.from({ length: 250 }, (_, number) => ({ raw: toEntry(`id-${number}`) })));
  let calls = 0;
  const cut: Note = async (tx) =>
    ++calls === 2 ? tx.execute(sql`select pg_terminate_backend(pg_backend_pid())`) : undefined;
  await expect(retry(cut)).rejects.toThrow(/connection|terminat/i);
  expect([(await stored()).length, (await left()).length]).toEqual([200, 50]);
  expect(await retry()).toEqual({ stored: 50, kept: [] });
  expect([(await stored()).length, (await left()).length]).toEqual([250, 0]);
});

test("an entry of an archive day stays until the day is brought back, and then its event is stored unchanged", async () => {
  await database.pool.query(
    `insert into archive_files (zone_id, day, kind, path, sha256, bytes, rows, hours, sum, format, first_at, last_at)
     values ($1, $2, 'events', 'x', repeat('0', 64), 1, 1, array_fill(0, array[24]), 1, 1, $3, $3)`,
    [ZONE, "2026-11-19", new Date("2026-11-19T05:00:00Z")],
  );
  const at = Date.parse("2026-11-19T05:00:03.250Z");
  const event = makeEvent({ occurredAt: at, logId: "late\\", url: "/a\tb\n", message: null, facts: 7 });
  await storeEvents(database, ZONE, [event], { expectNew: false });
  const raw = JSON.stringify({ logId: "row", timestamp: at, fields: { ruleId: "1" } });
  await quarantine([{ raw, route: "search" }]);
  const reason = "2026-11-19 is an archive day, which does not change any more";
  expect(await retry()).toEqual({ stored: 0, kept: [1, 2].map((id) => ({ id, reason })) });
  expect(await stored()).toEqual([]);

  await database.pool.query("update archive_files set retired_at = now()");
  expect(await retry()).toEqual({ stored: 2, kept: [] });
  const { rows } = await database.pool.query(
    "select log_id, url, message, facts, feature, route from waf_events where log_id like 'late%'",
  );
  const { logId, url, message, facts, feature, route } = event;
  expect(rows).toEqual([{ log_id: logId, url, message, facts, feature, route }]);
  expect(await left()).toEqual([]);
});
