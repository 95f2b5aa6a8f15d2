import { afterEach, beforeEach, expect, test } from "vitest";
import { readVerdicts, storeVerdict } from "#db/detection/verdicts.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import type { Emulator } from "#emulator/emulator.ts";
import { createSecret } from "#lib/secret.ts";
import { HOUR_MS } from "#lib/units.ts";
import { UNKNOWN_FACTS } from "#model/request-facts.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { createPseudonymKeyring } from "#people/privacy/pseudonym-keyring.ts";
import { createErasureGuard } from "#people/rules/erasure-guard.ts";
import { insertSpike } from "../alerts/insert-spike.ts";
import { EVIDENCE } from "../alerts/support.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { storeEvents } from "../db/new-events.ts";
import { verdictOf } from "../detection/verdict/verdict-world.ts";
import { NOW, type OracleEvent, openEmulator, oracle } from "../emulator/support.ts";
import { type IngestTest, openIngest } from "../ingest/ingest-support.ts";
import {
  countEverything,
  dumpDatabase,
  environment,
  expectRan,
  forgetProgress,
  GUARD,
  KEY_TEXT,
  recordsOf,
  rollUp,
  runCommand,
} from "./erasure-world.ts";
import { personalEvent } from "./some-events.ts";

let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(() => database.drop());

interface World {
  readonly emulator: Emulator;
  readonly ingest: IngestTest;
  /** The busiest address of the family, and its events. */
  readonly person: string;
  readonly theirs: readonly OracleEvent[];
}

async function openWorld(
  family: 4 | 6,
  { isOldest = false, historyHours = 2 }: { isOldest?: boolean; historyHours?: number } = {},
): Promise<World> {
  const switches = { pageSize: 50, order: isOldest ? "oldest" : "newest" } as const;
  const emulator = await openEmulator({ historyHours, eventsPerSecond: 0.04, lateShare: 0, switches });
  const ingest = await openIngest(emulator, { database, erasures: GUARD });
  const events = await oracle(emulator);
  const counts = Map.groupBy(
    events.filter(({ ip }) => ip.includes(":") === (family === 6)),
    ({ ip }) => ip,
  );
  const [person = "", theirs = []] = [...counts].sort((a, b) => b[1].length - a[1].length)[0] ?? [];
  expect(theirs.length).toBeGreaterThan(1);
  return { emulator, ingest, person, theirs };
}

async function stored(theirs: readonly OracleEvent[]) {
  const { rows } = await database.pool.query<Record<string, string>>(
    "select ip, ua, url, ja4, message, request_id, matched_key, rule_id, action, country from waf_events where log_id = any($1)",
    [theirs.map(({ logId }) => logId)],
  );
  return rows;
}

const EMPTY = { ip: "erased", ua: "", url: "", ja4: "", message: "", request_id: "", matched_key: null };

/** Nothing of these events is left but that they were; `shared` texts others have as well. */
async function expectErased(theirs: readonly OracleEvent[], person: string): Promise<void> {
  const rows = await stored(theirs);
  expect(rows).toHaveLength(theirs.length);
  for (const row of rows) expect(row).toMatchObject(EMPTY);
  for (const row of rows) expect(row["rule_id"]).not.toBe("");
  const records = await recordsOf(database, new Set(theirs.map(({ logId }) => logId)));
  for (const record of records) expect((JSON.parse(record) as { log: string }).log).toBe("{}");
  expect(await dumpDatabase(database)).not.toContain(person);
}

const erase = (person: string, more = "--yes --by alice", now = NOW) =>
  runCommand(database, `erase --ip ${person} ${more}`, { now });

test.each([4, 6] as const)(
  "everything of an IPv%i address goes, counts and proofs stay, and neither route brings it back",
  async (family) => {
    const { emulator, ingest, person, theirs } = await openWorld(family, { historyHours: 4 });
    await ingest.poll();
    await ingest.walk();
    await rollUp(database);
    const before = await countEverything(database);
    const ran = await erase(person);
    expect(ran.code).toBe(0);
    expect(ran.out).toContain(`${theirs.length} events and `);
    await expectErased(theirs, person);
    expect(await countEverything(database)).toEqual(before);

    for (const routes of [
      [ingest.poll, ingest.walk],
      [ingest.walk, ingest.poll],
    ]) {
      await forgetProgress(database);
      for (const run of routes) await run();
      await expectErased(theirs, person);
    }
    await rollUp(database);
    const verified = await runCommand(database, "verify --zone 101 --from 2026-11-20T11:00 --to now --ids", {
      now: NOW,
      emulator,
    });
    expect(verified.out).toContain("No differences.");
  },
);

test("events that were erased before they were ever stored stay out too, whichever route shows them first", async () => {
  const { ingest, person, theirs } = await openWorld(4);
  expectQuiet(await erase(person));
  await ingest.walk();
  await ingest.poll();
  await ingest.walk();
  await expectErased(theirs, person);
});

test("the former values of an erased event are deleted, also those under a second time, and no other's", async () => {
  const { ingest, person, theirs } = await openWorld(4);
  await ingest.poll();
  const [first, other] = [theirs[0]?.logId, "another"];
  await database.pool.query(
    `insert into event_revisions (zone_id, occurred_at, log_id, field, seen_at, before, after)
     select 101, occurred_at + later, id, field, now(), $3, '/former?of=them'
     from waf_events, unnest('{0,90}'::integer[]) minutes, make_interval(mins => minutes) later,
       unnest(array[$1, $2]) id, unnest('{ip,url}'::text[]) field where log_id = $1`,
    [first, other, person],
  );
  expectQuiet(await erase(person));
  const { rows } = await database.pool.query("select distinct log_id, before, after from event_revisions");
  expect(rows).toEqual([{ log_id: other, before: "erased", after: "/former?of=them" }]);
  await expectErased(theirs, person);
});

test("an event that the list alone had shown, masked, is emptied with its record once its address is known", async () => {
  const { ingest, person, theirs } = await openWorld(4, { isOldest: true });
  await ingest.walk();
  const { out } = await erase(person);
  expect(out).toMatch(/Not erased: \d+ events? with a masked address that may match/);
  expect((await stored(theirs)).every(({ ip }) => ip?.endsWith(".*") === true)).toBe(true);
  await ingest.poll();
  await expectErased(theirs, person);
});

test("with --include-masked a masked address goes at once, and stays out", async () => {
  const { ingest, person, theirs } = await openWorld(4);
  await ingest.walk();
  expectQuiet(await erase(person, "--include-masked --yes"));
  await expectErased(theirs, person);
  await database.pool.query("delete from waf_events; delete from raw_blocks");
  await forgetProgress(database);
  await ingest.walk();
  await expectErased(theirs, person);
});

test("sealed hours stay sealed with their evidence, and a repair of one brings nothing back", async () => {
  const { emulator, ingest, person, theirs } = await openWorld(4, { historyHours: 4 });
  for (let round = 0; round < 2; round++) {
    for (const run of [ingest.poll, ingest.walk, ingest.reconcile, ingest.seal]) {
      await run();
      emulator.advance(1_000);
    }
  }
  const sealed = () =>
    database.pool
      .query("select * from coverage_windows where state = 'sealed' order by starts_at")
      .then(({ rows }) => rows);
  const before = await sealed();
  expect(before.length).toBeGreaterThan(2);
  expectQuiet(await erase(person, "--yes", emulator.now()));
  await expectErased(theirs, person);
  expect(await sealed()).toEqual(before);

  const { logId = "", timestamp = 0 } = theirs.find((one) => one.timestamp < NOW - HOUR_MS) ?? {};
  const hour = new Date(timestamp - (timestamp % HOUR_MS));
  await database.pool.query("delete from waf_events where log_id = $1", [logId]);
  await database.pool.query("delete from raw_blocks");
  await database.pool.query(
    "update coverage_windows set state = 'open', sealed_at = null, evidence = null, reconciled_at = null where starts_at = $1",
    [hour],
  );
  await ingest.reconcile();
  emulator.advance(10 * 60_000);
  await ingest.repair();
  await expectErased(theirs, person);
});

test("a network is erased with all its addresses, one zone alone where it is asked for", async () => {
  const at = NOW - HOUR_MS;
  await ensurePartitions(database, ["2026-11-20"]);
  const event = (logId: string, ip: string) => ({
    logId,
    ip,
    occurredAt: at,
    route: "search" as const,
    feature: "waf",
    ruleId: "1",
    ja4: "j",
    ua: "u",
    url: "/",
    asn: "1",
    country: "DE",
    action: "block",
    message: "m",
    ...UNKNOWN_FACTS,
  });
  const ips = [
    "203.0.113.7",
    "203.0.113.250",
    "::ffff:203.0.113.9",
    "203.0.112.7",
    "203.0.113.*",
    "2001:db8::1",
    "x'; --",
  ];
  for (const zone of [101, 102])
    await storeEvents(
      database,
      zone,
      ips.map((ip, n) => event(`e${n}`, ip)),
      { expectNew: true },
    );
  const erased = async () => {
    const { rows } = await database.pool.query<{ key: string }>(
      "select zone_id || ' ' || log_id as key from waf_events where ip = 'erased' order by 1",
    );
    return rows.map(({ key }) => key);
  };
  const run = (args: string) => runCommand(database, `erase ${args} --yes`, { now: NOW });
  expectQuiet(await run("--cidr 203.0.113.0/24 --zone 102"));
  expect(await erased()).toEqual(["102 e0", "102 e1", "102 e2"]);
  expectQuiet(await run("--cidr 203.0.0.0/16 --include-masked"));
  expect(await erased()).toEqual([
    "101 e0",
    "101 e1",
    "101 e2",
    "101 e3",
    "101 e4",
    "102 e0",
    "102 e1",
    "102 e2",
    "102 e3",
    "102 e4",
  ]);
  expectQuiet(await run("--cidr 2001:db8::/64"));
  expect(await erased()).toContain("101 e5");
});

test("an erasure of an IPv6 network of 64 bits covers what the source series know of it", async () => {
  await ensurePartitions(database, ["2026-11-20"]);
  const person = "2001:db8:1:2::9";
  const events = [
    personalEvent("a", NOW - HOUR_MS, person),
    personalEvent("b", NOW - HOUR_MS, "2001:db8:1:3::9"),
  ];
  await storeEvents(database, 101, events, { expectNew: true });
  const sources = {
    kind: "rules_per_ip",
    findings: [{ kind: "rules_per_ip", key: "2001:db8:1:2::/64", members: 41 }],
  };
  await insertSpike(database.db, {
    openedAt: new Date(NOW - HOUR_MS),
    kind: "sources",
    ruleId: SOURCES_RULE,
    sources: sources as never,
    resolvedAttackers: ["rules_per_ip=2001:db8:1:2::/64", "rules_per_ip=203.0.113.7"],
  });
  await database.pool.query(`insert into source_usual (zone_id, day, address, peak3, peak15, peak60)
    values (101, '2026-11-19', '2001:db8:1:2::/64', 5, 6, 7), (101, '2026-11-19', '203.0.113.7', 5, 6, 7)`);
  await database.pool.query(
    "insert into source_hours (zone_id, starts_at, is_stale) values (101, $1, false)",
    [new Date(NOW - HOUR_MS - ((NOW - HOUR_MS) % HOUR_MS))],
  );
  await database.pool.query(`insert into known_sources (kind, pattern, reason, created_by)
    values ('ip', '2001:db8:1:2::/64', 'ours', 'ann'), ('ip', '203.0.113.0/24', 'ours', 'ann')`);
  await database.pool.query(
    `insert into notes (at, text, link, created_by)
     values (now(), 'block 2001:db8:1:2::1', 'https://ci.example/?ip=2001:db8:1:2::2', '2001:db8:1:2::3')`,
  );
  await database.pool.query(
    `insert into review_plans (zone_id, created_at, name, note, created_by, plan)
     values (101, now(), 'for 2001:db8:1:2::1', '2001:db8:1:2::2', 'ann', '{"exclusions":[{"rule":"942100","path":"/by/2001:db8:1:2::3"}]}')`,
  );

  const ran = await runCommand(database, "erase --cidr 2001:db8:1:2::/64 --yes", { now: NOW });
  expect(ran.out).toContain("1 event and 0 records emptied");
  expect(await dumpDatabase(database)).not.toContain("2001:db8:1:2:");
  const read = async (query: string) => (await database.pool.query<{ text: string }>(query)).rows;
  expect(await read("select address as text from source_usual")).toEqual([{ text: "203.0.113.7" }]);
  expect(await read("select pattern as text from known_sources where pattern like '203.%'")).toHaveLength(1);
  expect(await read("select unnest(resolved_attackers) as text from spikes")).toEqual([
    { text: expect.stringMatching(/^rules_per_ip=.+/) },
    { text: "rules_per_ip=203.0.113.7" },
  ]);
  // The hour is counted again, without the person.
  expect(await read("select is_stale::text as text from source_hours")).toEqual([{ text: "true" }]);
});

test("an erasure in one zone finds what only that zone has, and leaves alone what another could not read", async () => {
  const person = "198.51.100.9";
  await ensurePartitions(database, ["2026-11-20"]);
  await storeEvents(database, 102, [personalEvent("a", NOW - HOUR_MS, person)], { expectNew: true });
  await database.pool.query(
    `insert into saved_views (is_shared, key_id, created_by, page, name, state)
     values (true, 'k', 'bob', 'explorer', 'search', 'ip=' || $1::text)`,
    [person],
  );
  await database.pool.query(
    `insert into quarantined_entries (zone_id, route, reason, raw)
     select zone, 'list', 'x', convert_to('{"RemoteIp":"' || $1::text || '"', 'UTF8') from unnest(array[101, 102]) as zone`,
    [person],
  );
  expect((await erase(person, "--zone 102 --yes")).out).toContain("1 event and 0 records emptied");
  const { rows } = await database.pool.query<{ zone_id: number; raw: Buffer }>(
    "select zone_id, raw from quarantined_entries order by zone_id",
  );
  expect(rows.map(({ zone_id, raw }) => [zone_id, String(raw).includes(person)])).toEqual([
    [101, true],
    [102, false],
  ]);
});

test("spikes, messages, recommendations, notes and unreadable entries forget the address as well", async () => {
  const person = "198.51.100.77";
  const top = { ...EVIDENCE.top, ip: [{ value: person, count: 5, share: 1 }] };
  const openedAt = new Date(NOW - HOUR_MS);
  const spike = {
    openedAt,
    evidence: {
      ...EVIDENCE,
      from: openedAt.toISOString(),
      to: openedAt.toISOString(),
      firstEventAt: null,
      lastEventAt: null,
      top,
    },
  };
  await insertSpike(database.db, spike as never);
  const other = await insertSpike(database.db, { openedAt, ruleId: "1" });
  const verdict = verdictOf("first", NOW);
  await storeVerdict(database.db, { id: other, zoneId: 101 }, verdict);
  const sample = {
    ...verdict.sample,
    ip: person,
    url: "/zanzibar",
    matched: "zanzibar",
    parameter: "ARGS:zanzibar",
  };
  const ofPerson = { ...verdictOf("half-hour", NOW), sample: sample as never };
  await storeVerdict(database.db, { id: other, zoneId: 101 }, ofPerson);
  await database.pool.query(
    `insert into alerts (fired_at, zone_id, kind, fingerprint, transitions)
     values (now(), 101, 'spike', 'f', jsonb_build_array(jsonb_build_object('note', 'it is ' || $1::text)))`,
    [person],
  );
  await database.pool.query(
    `insert into notifications (alert_id, transition, reason, channel, dedupe_key, content)
     select id, 1, 'first', 'terminal', 'k', jsonb_build_object('top', jsonb_build_object('ips',
       jsonb_build_array(jsonb_build_object('value', $1::text)), 'paths', jsonb_build_array('/me'))) from alerts`,
    [person],
  );
  await database.pool.query(
    `insert into advice (asked_at, zone_id, rule_id, success, text) values (now(), 101, '1', true, 'block ' || $1::text)`,
    [person],
  );
  await database.pool.query(
    `insert into silences (starts_at, expires_at, created_by, reason, matchers)
     values (now(), now() + interval '1 hour', 'bob', 'test from ' || $1::text || ' and ec2-' || replace($1::text, '.', '-'), '{}')`,
    [person],
  );
  await database.pool.query(
    `insert into quarantined_entries (zone_id, route, reason, raw)
     values (101, 'list', 'unreadable: fields.' || $1::text || ': invalid_union', convert_to('{"RemoteIp":"' || $1::text || '"', 'UTF8')),
       (101, 'list', 'unreadable: fields.' || $1::text || ': invalid_type', '{"erased":"0a"}'), (101, 'list', 'x', 'harmless')`,
    [person],
  );
  const counted = await erase(person, "--dry-run --json");
  expect(JSON.parse(counted.out)).toMatchObject({
    dryRun: true,
    found: { events: 0, spikes: 1, alerts: 1, notifications: 1, advice: 1, silences: 1, quarantined: 2 },
  });
  expect(await dumpDatabase(database)).toContain(person);
  const { out } = await erase(person);
  expect(out).toContain("1 spike, 1 alert, 1 message, 1 recommendation, 1 silence, unreadable entries: 2");
  const { rows: texts } = await database.pool.query(
    `select (select text from advice) as advice, (select reason from silences) as silence,
       (select transitions from alerts) as transitions`,
  );
  expect(texts).toEqual([
    {
      advice: "block erased",
      silence: "test from erased and ec2-erased",
      transitions: [{ note: "it is erased" }],
    },
  ]);
  const dump = await dumpDatabase(database);
  expect(dump).not.toContain(person);
  expect(dump).not.toContain(person.replaceAll(".", "-"));
  expect(dump).not.toContain("/me");
  expect(dump).not.toContain("zanzibar");
  const kept = (await readVerdicts(database.db, [other])).get(other);
  const erased = { ...sample, ip: "erased", url: "", matched: "", parameter: "" };
  expect(kept).toEqual([verdict, { ...ofPerson, sample: erased }]);
  expect(dump).toContain("unreadable harmless");
  expect(dump).toContain("unreadable: fields.erased: invalid_union");
  expect(dump).toContain("unreadable: fields.erased: invalid_type");
  expect((await erase(person)).out).toContain("0 events and 0 records emptied; 0 spikes, 0 alerts");
});

test("the trail says who erased what by its hash, and the receipt how much; neither names the address", async () => {
  const { ingest, person } = await openWorld(4);
  await ingest.poll();
  const receipt = JSON.parse((await erase(person, "--yes --by alice --reason request-4711 --json")).out) as {
    hash: string;
  };
  const { out } = await runCommand(database, "audit list --action erasure. --json", { now: NOW });
  expect(out).not.toContain(person);
  const { items } = JSON.parse(out) as { items: { action: string; actor: string; details: unknown }[] };
  expect(items.map(({ action }) => action)).toEqual(["erasure.completed", "erasure.requested"]);
  expect(items[0]).toMatchObject({
    actor: "alice",
    details: { hash: receipt.hash, reason: "request-4711", counts: { events: expect.any(Number) } },
  });
  expect((await runCommand(database, "audit list --since -1m", { now: Date.now() })).out).toContain(
    "erasure.completed   address ",
  );
});

test("all mistakes are listed at once, and nothing is erased without --yes", async () => {
  const run = (line: string) => runCommand(database, `erase ${line}`, { now: NOW });
  const { code, err } = await run("--ip x --cidr y --zone z --until w");
  expect(code).toBe(2);
  for (const named of [
    "either --ip or --cidr",
    '--zone "z"',
    '--until "w"',
    "--yes or --dry-run must be given",
  ])
    expect(err).toContain(named);
  expect((await run("--cidr 10.0.0.0/4 --yes")).err).toContain("IPv4 from /8 on");
  expect((await run("--ip 203.0.113.7 --yes --reason for:203.0.113.7")).err).toContain("without an address");
  expect((await database.pool.query("select from erasures")).rowCount).toBe(0);
});

test("a person at the terminal sees the counts and a question, and nothing is erased without the word", async () => {
  const { ingest, person, theirs } = await openWorld(4);
  await ingest.poll();
  const answer = (typed: string) => runCommand(database, `erase --ip ${person}`, { now: NOW, typed });
  for (const typed of ["yes\n", "\n", ""]) {
    const { code, err, out } = await answer(typed);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(`${theirs.length} events; 0 spikes`);
    expect(err).toContain("nothing was changed");
  }
  expect((await database.pool.query("select from erasures")).rowCount).toBe(0);
  expect((await answer("erase\n")).out).toContain(`${theirs.length} events and 0 records emptied`);
  await expectErased(theirs, person);
});

test("another key than the one in use is refused, and ingest holds back what it cannot check", async () => {
  const { emulator, person, theirs } = await openWorld(4);
  expectQuiet(await erase(person));
  await database.pool.query("update pseudonym_keys set key_id = 'another'");
  const { code, err } = await erase(person);
  expect(code).toBe(1);
  expect(err).toContain("LONGWATCH_PSEUDONYM_KEY");
  expect(environment(database)["LONGWATCH_PSEUDONYM_KEY"]).toBeDefined();
  expect(err).not.toContain(environment(database)["LONGWATCH_PSEUDONYM_KEY"]);
  const keyless = createErasureGuard(
    createPseudonymKeyring({ pseudonymKey: createSecret(KEY_TEXT), keyDir: "" }, database).open,
  );
  await (await openIngest(emulator, { database, erasures: keyless })).poll();
  expect(await stored(theirs)).toEqual([]);
  const { rows } = await database.pool.query<{ log_id: string }>(
    "select convert_from(raw, 'UTF8')::jsonb ->> 'logId' as log_id from quarantined_entries where is_held",
  );
  expect(rows.map(({ log_id }) => log_id)).toEqual(expect.arrayContaining(theirs.map(({ logId }) => logId)));
});

function expectQuiet(ran: Awaited<ReturnType<typeof erase>>): void {
  expectRan({ ...ran, err: "" });
}
