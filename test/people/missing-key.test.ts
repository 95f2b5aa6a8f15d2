import { afterEach, beforeEach, expect, test } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import type { NewQuarantinedEntry } from "#db/ingest/quarantine.ts";
import { readHeldCounts } from "#db/ingest/quarantine.ts";
import { storePage } from "#db/ingest/store-page.ts";
import { recordMissingKey, registerKeyId } from "#db/people/pseudonymise.ts";
import { acquireLease } from "#db/postgres/leases.ts";
import { createPartitionKeeper, ensurePartitions } from "#db/postgres/partitions.ts";
import { privacyCommand } from "#faces/cli/privacy/privacy.ts";
import { statusCommand } from "#faces/cli/status/status.ts";
import { createReportServiceJob } from "#jobs/alerts/report-service.ts";
import { judgeHeld, retryQuarantined } from "#jobs/ingest/retry-quarantined.ts";
import { createSecret } from "#lib/secret.ts";
import { HOUR_MS } from "#lib/units.ts";
import { openRawBlock, packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey, type WafEvent } from "#model/waf-event.ts";
import { eraseAddress } from "#people/privacy/erase-address.ts";
import { createErasureGuard, PseudonymKeyError } from "#people/rules/erasure-guard.ts";
import { singleAddress } from "#people/rules/erasure-target.ts";
import { createPseudonymKey } from "#people/rules/pseudonym.ts";
import { createAlertWorld } from "../alerts/alert-world.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { NOW, openEmulator, oracle } from "../emulator/support.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { openIngest, silent } from "../ingest/ingest-support.ts";
import {
  dumpDatabase,
  environment,
  expectRan,
  forgetProgress,
  GUARD,
  KEY,
  recordsOf,
  runCommand,
} from "./erasure-world.ts";
import { personalEvent } from "./some-events.ts";

const PERSON = "203.0.113.7";
const OTHER = "198.51.100.1";
const ZONE = 101;
const never = new AbortController().signal;
let database: MigratedDatabase;
let missing: number;

beforeEach(async () => {
  database = await createMigratedDatabase();
  await ensurePartitions(database, ["2026-11-20"]);
  missing = 0;
  await registerKeyId(database.db, KEY.id);
});

afterEach(() => database.drop());

/** A process that lost the key. */
const KEYLESS = createErasureGuard(
  () => Promise.reject(new PseudonymKeyError("The pseudonym key is missing.")),
  () => {
    missing++;
  },
);

function erase(untilAt = NOW) {
  const asked = { network: singleAddress(PERSON) as never, zoneId: null, includeMasked: false, untilAt };
  return eraseAddress(
    { database, key: KEY, clock: () => NOW },
    asked,
    { actor: "alice", reason: "request 4711" },
    never,
  );
}

const rawOf = ({ logId, occurredAt }: WafEvent) => ({
  occurredAt,
  logIdHash: hashEventKey({ logId, occurredAt }),
  raw: Buffer.from(
    JSON.stringify({ logId, timestamp: occurredAt, log: '{"Url":"/me"}', labels: { ruleId: "1" } }),
  ),
});

async function store(
  events: readonly WafEvent[],
  guard: typeof GUARD,
  { withRecords = false, quarantined = [] as readonly NewQuarantinedEntry[] } = {},
) {
  const name = `test.${Math.random()}`;
  const fence = await acquireLease(database.db, { name, holder: name, ttlMs: 600_000 });
  const page = {
    zoneId: ZONE,
    lease: { name, fence: fence ?? 0 },
    events,
    expectNew: true,
    storedAt: NOW,
    quarantined,
    rawBlocks: withRecords ? await packRawBlocks(events.map(rawOf)) : [],
    erasures: guard,
  };
  return (await storePage(database, page, async () => undefined)).stored;
}

const judge = (guard: typeof GUARD) =>
  judgeHeld(
    {
      database,
      partitions: createPartitionKeeper(database),
      clock: () => NOW,
      log: silent,
      erasures: guard,
      afterPage: () => undefined,
    },
    never,
  );

async function events() {
  const { rows } = await database.pool.query<{ event: string }>(
    `select log_id || ' ' || ip || case when url <> '' and request_id <> '' and matched_key is not null then ' whole'
       when url = '' and request_id = '' and matched_key is null then ' empty' else ' in part' end as event
     from waf_events order by log_id`,
  );
  return rows.map(({ event }) => event);
}

const held = () => readHeldCounts(database.db);

test("without the key a page is stored: what an erasure may cover is held back, and what comes later is not", async () => {
  await erase();
  const stored = await store(
    [
      personalEvent("theirs", NOW - 5, PERSON),
      personalEvent("neighbour", NOW - 4, OTHER),
      personalEvent("later", NOW + 1, PERSON),
    ],
    KEYLESS,
    { withRecords: true },
  );
  // Two events, and three records in one block.
  expect(stored).toEqual({ inserted: 1, filled: 0, quarantined: 5, reopened: [] });
  expect(await events()).toEqual([`later ${PERSON} whole`]);
  expect(await held()).toEqual([{ zoneId: ZONE, entries: 5 }]);
  expect((await database.pool.query("select from raw_blocks")).rowCount).toBe(0);
  expect(missing).toBeGreaterThan(0);
});

test("once the key is back every held event is stored, the erased one empty and with an empty record", async () => {
  await erase();
  const page = [personalEvent("theirs", NOW - 5, PERSON), personalEvent("neighbour", NOW - 4, OTHER)];
  await store(page, KEYLESS, { withRecords: true });
  await judge(KEYLESS);
  expect(await held()).toEqual([{ zoneId: ZONE, entries: 4 }]);

  await Promise.all([judge(GUARD), judge(GUARD)]);
  await judge(GUARD);
  expect(await held()).toEqual([]);
  expect(await events()).toEqual([`neighbour ${OTHER} whole`, "theirs erased empty"]);
  const { rows } = await database.pool.query<{ block: Buffer }>("select block from raw_blocks");
  const records = (await Promise.all(rows.map(({ block }) => openRawBlock(block)))).flat().map(String);
  expect(records).toEqual([expect.stringContaining('"log":"{}"'), String(rawOf(page[1] as WafEvent).raw)]);
  const { rows: hours } = await database.pool.query(
    "select sum(stored_count)::integer as n from coverage_windows",
  );
  expect(hours).toEqual([{ n: 2 }]);
  expect(await dumpDatabase(database)).not.toContain(PERSON);
});

test("a held record of an archive day is quarantined once the key is back", async () => {
  await erase();
  const event = personalEvent("neighbour", NOW - 4, OTHER);
  await store([event], KEYLESS, { withRecords: true });
  await database.pool.query("delete from quarantined_entries where route = 'search'");
  await database.pool.query(
    `insert into archive_files (zone_id, day, kind, path, sha256, bytes, rows, hours, sum, format, first_at, last_at)
     values ($1, '2026-11-20', 'events', 'x', repeat('0', 64), 1, 1, array_fill(0, array[24]), 1, 1, $2, $2)`,
    [ZONE, new Date(NOW - 4)],
  );
  await judge(GUARD);
  expect(await held()).toEqual([]);
  expect((await database.pool.query("select from raw_blocks")).rowCount).toBe(0);
  const { rows } = await database.pool.query("select raw::text as raw, reason from quarantined_entries");
  expect(rows).toEqual([
    {
      raw: `\\x${rawOf(event).raw.toString("hex")}`,
      reason: "2026-11-20 is an archive day, which does not change any more",
    },
  ]);
});

test("a page that is read again is not held twice, and a stored event that it would not change is not held at all", async () => {
  await store([personalEvent("known", NOW - 9, OTHER)], GUARD);
  await erase();
  const page = [
    personalEvent("known", NOW - 9, OTHER),
    personalEvent("masked", NOW - 5, "203.0.113.*", { route: "list", ja4: null }),
    personalEvent("masked", NOW - 5, "203.0.113.*", { route: "list", ja4: null }),
  ];
  expect((await store(page, KEYLESS)).quarantined).toBe(1);
  expect((await store(page, KEYLESS)).quarantined).toBe(0);
  expect((await store([personalEvent("masked", NOW - 5, PERSON)], KEYLESS)).quarantined).toBe(1);
  await judge(GUARD);
  expect(await events()).toEqual([`known ${OTHER} whole`, "masked erased empty"]);
});

test("an unreadable entry and its reason are kept as they are, and checked once the key is back", async () => {
  await erase();
  const raw = (ip: string) => Buffer.from(`{"RemoteIp":"${ip}"`);
  const entry = (ip: string) => ({
    route: "list" as const,
    day: "2026-11-20",
    reason: `fields.${ip}: bad`,
    raw: raw(ip),
  });
  // It can be read, but it is in the quarantine for another reason, which the key does not change.
  const fields = { ip: OTHER, url: "/me", ruleId: "1" };
  const row = Buffer.from(JSON.stringify({ logId: "doubtful", timestamp: NOW - 5, fields }));
  const doubtful = { route: "search" as const, day: null, reason: "held back with its answer", raw: row };
  await store([], KEYLESS, { quarantined: [entry(PERSON), entry(OTHER), doubtful] });
  const kept = async () => {
    const { rows } = await database.pool.query<{ raw: Buffer; reason: string; is_held: boolean }>(
      "select raw, reason, is_held from quarantined_entries order by id",
    );
    return rows.map((row) => `${String(row.raw)} ${row.reason} ${row.is_held}`);
  };
  expect(await kept()).toEqual([
    `${String(raw(PERSON))} fields.${PERSON}: bad true`,
    `${String(raw(OTHER))} fields.${OTHER}: bad true`,
    `${String(row)} held back with its answer true`,
  ]);
  await judge(GUARD);
  expect(await kept()).toEqual([
    expect.stringMatching(/^\{"erased":.*\} fields\.erased: bad false$/),
    `${String(raw(OTHER))} fields.${OTHER}: bad false`,
    `${String(row)} held back with its answer false`,
  ]);
  expect(await events()).toEqual([]);
  const late = { ...entry(PERSON), raw: raw(`${PERSON}, later`) };
  await store([], GUARD, { quarantined: [late] });
  expect((await kept())[3]).toMatch(/^\{"erased":.*\} fields\.erased: bad false$/);
});

test("an entry of an erased address that is read again is emptied, and stays where it is without the key", async () => {
  await erase();
  const fields = (ip: string) => ({ ip, url: "/me", ruleId: "1" });
  for (const [logId, ip] of [
    ["theirs", PERSON],
    ["other", OTHER],
    ["later", PERSON],
  ] as const)
    await database.pool.query(
      "insert into quarantined_entries (zone_id, route, reason, raw, received_at) values ($1, 'search', 'x', $2, $3)",
      [ZONE, Buffer.from(JSON.stringify({ logId, timestamp: NOW - 5.5, fields: fields(ip) })), new Date(NOW)],
    );
  const retry = (guard: typeof GUARD, ids: number[]) =>
    retryQuarantined(
      { database, partitions: createPartitionKeeper(database), clock: () => NOW, erasures: guard },
      { zoneId: ZONE, ids, note: async () => undefined },
      never,
    );
  const left = async () => (await database.pool.query("select from quarantined_entries")).rowCount;
  const emptied = async () =>
    (await database.pool.query("select log_id, ip, url from waf_events order by log_id")).rows;

  expect(await retry(GUARD, [1, 2])).toEqual({ stored: 2, kept: [] });
  expect(await emptied()).toEqual([
    { log_id: "other", ip: OTHER, url: "/me" },
    { log_id: "theirs", ip: "erased", url: "" },
  ]);
  await expect(retry(KEYLESS, [3])).rejects.toMatchObject({ name: "KeyMissingError" });
  expect([await left(), await held()]).toEqual([1, []]);
  expect(await retry(GUARD, [3])).toEqual({ stored: 1, kept: [] });
  expect((await emptied())[0]).toEqual({ log_id: "later", ip: "erased", url: "" });
});

test("polling and walking go on without the key; with the key back nothing is lost and nothing erased comes back", async () => {
  const emulator = await openEmulator({
    historyHours: 3,
    eventsPerSecond: 0.05,
    lateShare: 0,
    switches: { pageSize: 100 },
  });
  const shown = await oracle(emulator);
  const byAddress = Map.groupBy(shown, ({ ip }) => ip);
  const [person = "", theirs = []] = [...byAddress].sort((a, b) => b[1].length - a[1].length)[0] ?? [];
  const withKey = await openIngest(emulator, { database, erasures: GUARD });
  const keyless = await openIngest(emulator, { database, erasures: KEYLESS });
  // Before anything of the address was stored.
  expectRan({ ...(await runCommand(database, `erase --ip ${person} --yes`, { now: NOW })), err: "" });

  for (let round = 0; round < 2; round++) {
    await keyless.poll();
    await keyless.walk();
    await forgetProgress(database);
  }
  expect(await events()).toEqual([]);
  const { rows: waiting } = await database.pool.query<{ events: number }>(
    `select count(distinct convert_from(raw, 'UTF8')::jsonb ->> 'logId')::integer as events
     from quarantined_entries where is_held`,
  );
  expect(waiting).toEqual([{ events: shown.length }]);

  await judge(GUARD);
  await withKey.poll();
  await withKey.walk();
  expect(await held()).toEqual([]);
  const { rows } = await database.pool.query<{ log_id: string; ip: string }>(
    "select log_id, ip from waf_events",
  );
  const expected = shown.map(({ logId, ip }) => `${logId} ${ip === person ? "erased" : ip}`);
  expect(rows.map(({ log_id, ip }) => `${log_id} ${ip}`).sort()).toEqual(expected.sort());
  const ids = new Set(theirs.map(({ logId }) => logId));
  const records = await recordsOf(database, ids);
  expect(records.length).toBe(ids.size);
  for (const record of records) expect(record).toContain('"log":"{}"');
  expect(await dumpDatabase(database)).not.toContain(person);
});

test("a key that is lost for good is replaced at once: held events are stored without a person, later events whole", async () => {
  await erase(NOW + 24 * HOUR_MS);
  const before = [personalEvent("stored", NOW - 9, OTHER), personalEvent("masked", NOW - 8, "203.0.113.*")];
  await store(before, GUARD);
  await store([personalEvent("held", NOW - 5, OTHER)], KEYLESS, { withRecords: true });

  const env = {
    ...environment(database),
    LONGWATCH_PSEUDONYM_KEY: "another-key-of-thirty-two-characters-or-more",
  };
  const run = (line: string, more: Record<string, string> = {}) =>
    runStoreCommand(privacyCommand, { ...env, ...more }, line.split(" "), { now: NOW });
  expect((await run("rotate-key --yes")).err).toContain("wait until");
  expect((await run("rotate-key --lost --yes", environment(database))).err).toContain(
    "this process has the key in use",
  );
  const ran = await run("rotate-key --lost --yes --by bob");
  expect(expectRan(ran)).toContain('by alice, "request 4711": events up to 2026-11-21 15:30 UTC');

  const key = createPseudonymKey(createSecret(env.LONGWATCH_PSEUDONYM_KEY));
  const guard = createErasureGuard(() => Promise.resolve(key));
  await judge(guard);
  await store(
    [
      personalEvent("late", NOW - 4, PERSON),
      personalEvent("masked", NOW - 8, PERSON),
      personalEvent("stored", NOW - 9, OTHER),
      personalEvent("new", NOW + 60_000, OTHER),
    ],
    guard,
    { withRecords: true },
  );
  expect(await held()).toEqual([]);
  expect(await events()).toEqual([
    "held erased empty",
    "late erased empty",
    "masked 203.0.113.* whole",
    `new ${OTHER} whole`,
    `stored ${OTHER} whole`,
  ]);
  for (const record of await recordsOf(database, new Set(["held", "late"])))
    expect(record).toContain('"log":"{}"');
  expect(await dumpDatabase(database)).not.toContain(PERSON);
  const { rows } = await database.pool.query("select actor, details from audit_entries where action = $1", [
    "pseudonym-key.lost",
  ]);
  expect(rows).toEqual([
    {
      actor: "bob",
      details: {
        before: KEY.id,
        after: key.id,
        endedErasures: [1],
        held: [{ zoneId: ZONE, entries: 2 }],
      },
    },
  ]);
});

test("status names the missing key and what is held back for want of it", async () => {
  await erase();
  await store([personalEvent("theirs", NOW - 5, PERSON), personalEvent("later", NOW + 1, OTHER)], KEYLESS);
  const status = async (args: string[] = []) =>
    (await runStoreCommand(statusCommand, environment(database), args, { now: NOW })).out;
  expect(await status()).not.toContain("pseudonym.key");
  await recordMissingKey(database.db, "The pseudonym key 0a1b is missing: /x/pseudonym.key does not exist.");
  const text =
    "The pseudonym key 0a1b is missing: /x/pseudonym.key does not exist. Longwatch holds back 1 entry of zone 101 until the key is present.";
  expect(await status()).toContain(text);
  const { attention } = JSON.parse(await status(["--json"])) as { attention: { kind: string }[] };
  expect(attention.filter(({ kind }) => kind === "pseudonym-key")).toEqual([
    { kind: "pseudonym-key", zoneId: null, text, command: null },
  ]);
  expect(await held()).toEqual([{ zoneId: ZONE, entries: 1 }]);
});

test("a missing key raises one alert that names the cause and what is held, and it ends when the key is back", async () => {
  await erase();
  await store([personalEvent("theirs", NOW - 5, PERSON)], KEYLESS);
  const world = createAlertWorld(database);
  const job = createReportServiceJob({
    database,
    clock: () => NOW,
    log: silent,
    zoneIds: [],
    pollEveryMs: 30_000,
    routing: () => routeToAll(["chat"]),
    afterAlerts: async () => undefined,
  });
  const told = async () => {
    await job.run({} as never, never);
    return (await world.messages()).map(({ reason, message }) => `${reason} ${message.headline}`);
  };
  expect(await told()).toEqual([]);
  await recordMissingKey(database.db, "The pseudonym key 0a1b is missing.");
  const first =
    "first The pseudonym key 0a1b is missing. Longwatch holds back 1 entry of zone 101 until the key is present.";
  expect(await told()).toEqual([first]);
  expect(await told()).toEqual([first]);
  await database.pool.query("update pseudonym_keys set missing_at = now() - interval '4 minutes'");
  expect(await told()).toEqual([first]);
  await judge(GUARD);
  expect(await told()).toEqual([
    first,
    "resolved The pseudonym key is present again, and no event is held back",
  ]);
});
