import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { storeVerdict } from "#db/detection/verdicts.ts";
import { acquireLease } from "#db/postgres/leases.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { createPseudonymiseIpsJob } from "#jobs/people/pseudonymise-ips.ts";
import { DAY_MS } from "#lib/units.ts";
import { PseudonymKeyError } from "#people/rules/erasure-guard.ts";
import { type PseudonymKey, toPseudonym } from "#people/rules/pseudonym.ts";
import { insertSpike } from "../alerts/insert-spike.ts";
import { EVIDENCE } from "../alerts/support.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { storeEvents } from "../db/new-events.ts";
import { verdictOf } from "../detection/verdict/verdict-world.ts";
import { silent } from "../ingest/ingest-support.ts";
import { KEY, KEY_TEXT } from "./erasure-world.ts";
import { insertMany, personalEvent } from "./some-events.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
const IP_DAYS = 90;
/** The newest day whose addresses are pseudonymised. */
const DUE = Date.UTC(2026, 7, 21);
const KEPT = DUE + DAY_MS;
let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(() => database.drop());

const day = (at: number) => new Date(at).toISOString().slice(0, 10);

function run({
  openKey = async () => KEY,
  ipDays = IP_DAYS,
  now = NOW,
}: {
  openKey?: () => Promise<PseudonymKey>;
  ipDays?: number;
  now?: number;
} = {}) {
  const job = createPseudonymiseIpsJob({ database, clock: () => now, log: silent, ipDays, openKey });
  return job.run({} as never, new AbortController().signal);
}

async function ips(): Promise<Record<string, string | null>> {
  const { rows } = await database.pool.query<{ log_id: string; ip: string | null }>(
    "select log_id, ip from waf_events",
  );
  return Object.fromEntries(rows.map(({ log_id, ip }) => [log_id, ip]));
}

/** The events that have the id of their request. */
async function withRequestId(): Promise<string[]> {
  const { rows } = await database.pool.query<{ log_id: string }>(
    "select log_id from waf_events where coalesce(request_id, '-') <> '' order by 1",
  );
  return rows.map(({ log_id }) => log_id);
}

async function doneDays(): Promise<string[]> {
  const { rows } = await database.pool.query<{ day: string }>(
    "select day::text from pseudonymised_days order by 1",
  );
  return rows.map(({ day }) => day);
}

test("full addresses past their days become pseudonyms; masked, empty, unknown and erased ones and later days stay", async () => {
  await ensurePartitions(database, [day(DUE), day(KEPT)]);
  const at = (from: number, log: string, ip: string | null) => personalEvent(log, from + 5, ip);
  await storeEvents(
    database,
    101,
    [
      at(DUE, "four", "203.0.113.7"),
      at(DUE, "near", "203.0.113.8"),
      at(DUE, "six", "2001:db8::1"),
      at(DUE, "masked", "203.0.113.*"),
      at(DUE, "empty", ""),
      at(DUE, "unknown", null),
      at(DUE, "erased", "erased"),
      at(DUE, "odd", "' or 1=1"),
      at(KEPT, "young", "203.0.113.7"),
    ],
    { expectNew: true },
  );
  await storeEvents(database, 102, [at(DUE + DAY_MS - 6, "other", "203.0.113.7")], { expectNew: true });
  await run();
  const expected = {
    four: toPseudonym(KEY, "203.0.113.7"),
    near: toPseudonym(KEY, "203.0.113.8"),
    six: toPseudonym(KEY, "2001:db8::1"),
    masked: "203.0.113.*",
    empty: "",
    unknown: null,
    erased: "erased",
    odd: toPseudonym(KEY, "' or 1=1"),
    young: "203.0.113.7",
    other: toPseudonym(KEY, "203.0.113.7"),
  };
  expect(await ips()).toEqual(expected);
  expect(await withRequestId()).toEqual(["young"]);
  expect(await doneDays()).toEqual([day(DUE)]);
  await run();
  expect(await ips()).toEqual(expected);
});

test("a route that shows such an event again neither brings the address back nor doubles it", async () => {
  await ensurePartitions(database, [day(DUE)]);
  const event = personalEvent("a", DUE + 5, "203.0.113.7");
  await storeEvents(database, 101, [event], { expectNew: true });
  await run();
  await storeEvents(database, 101, [event], { expectNew: false });
  await storeEvents(database, 101, [event], { expectNew: true });
  expect(await ips()).toEqual({ a: toPseudonym(KEY, "203.0.113.7") });
  expect(await withRequestId()).toEqual([]);
});

test("a day that ingest might still write to is looked at again, one whose list is being read waits", async () => {
  const young = NOW - 6 * DAY_MS;
  await ensurePartitions(database, [day(young)]);
  await storeEvents(database, 101, [personalEvent("a", young, "203.0.113.7")], { expectNew: true });
  const lease = { name: `walk-days.101.${day(young)}`, holder: "test", ttlMs: 60_000 };
  await acquireLease(database.db, lease);
  await run({ ipDays: 5 });
  expect(await ips()).toEqual({ a: "203.0.113.7" });
  await database.pool.query("update leases set expires_at = null");
  await run({ ipDays: 5 });
  expect(await doneDays()).toEqual([]);
  await storeEvents(database, 101, [personalEvent("b", young, "203.0.113.9")], { expectNew: true });
  await run({ ipDays: 5 });
  expect(await ips()).toEqual({ a: toPseudonym(KEY, "203.0.113.7"), b: toPseudonym(KEY, "203.0.113.9") });
});

test("spikes, messages and advice that ended on such a day lose full addresses too, and keep what they say", async () => {
  await ensurePartitions(database, [day(DUE - 3 * DAY_MS)]);
  const spike = (closedAt: number) => ({
    openedAt: new Date(closedAt - 1),
    closedAt: new Date(closedAt),
    evidence: {
      ...EVIDENCE,
      from: "2026-08-21T00:00:00Z",
      to: "2026-08-21T00:00:00Z",
      firstEventAt: null,
      lastEventAt: null,
      top: {
        ...EVIDENCE.top,
        ip: [{ value: "203.0.113.7", count: 2, share: 1 }],
        path: [{ value: "/a", count: 2, share: 1 }],
      },
    },
  });
  await insertSpike(database.db, { ...spike(DUE), ruleId: "old" } as never);
  await insertSpike(database.db, { ...spike(KEPT + 5), ruleId: "young" } as never);
  const { rows: stored } = await database.pool.query<{ id: string }>(
    "select id from spikes order by rule_id",
  );
  for (const [index, judgedAt] of [DUE, KEPT + 5].entries())
    await storeVerdict(
      database.db,
      { id: Number(stored[index]?.id), zoneId: 101 },
      verdictOf("first", judgedAt),
    );
  await run();
  const { rows } = await database.pool.query(
    "select rule_id, evidence #>> '{top,ip,0,value}' as ip, evidence #>> '{top,path,0,value}' as path from spikes order by 1",
  );
  expect(rows).toEqual([
    { rule_id: "old", ip: toPseudonym(KEY, "203.0.113.7"), path: "/a" },
    { rule_id: "young", ip: "203.0.113.7", path: "/a" },
  ]);
  const { rows: samples } = await database.pool.query(
    "select verdict #>> '{sample,ip}' as ip, verdict #>> '{sample,matched}' as matched from verdicts order by judged_at",
  );
  expect(samples).toEqual([
    { ip: toPseudonym(KEY, "203.0.113.7"), matched: "a@b.test" },
    { ip: "203.0.113.7", matched: "a@b.test" },
  ]);
});

test("alerts and messages lose full addresses after their days, delivered or not, also when their day's events are gone or done", async () => {
  const [old, done, kept] = [DUE - 30 * DAY_MS, DUE, KEPT + 5];
  await ensurePartitions(database, [day(NOW)]);
  await database.pool.query("insert into pseudonymised_days (day, events, key_id) values ($1, 0, $2)", [
    day(done),
    KEY.id,
  ]);
  const content = JSON.stringify({ top: { ips: [{ value: "203.0.113.7", count: 1, share: 1 }] } });
  for (const [name, at] of Object.entries({ old, done, kept }))
    await database.pool.query(
      `with alert as (
         insert into alerts (fired_at, resolved_at, state, zone_id, kind, fingerprint, rule_id, details)
         values ($2, $2, 'resolved', 101, 'spike', $1, '942100', case when $1 = 'done' then '{}' else $3::jsonb end)
         returning id)
       insert into notifications (alert_id, created_at, next_attempt_at, delivered_at, transition, reason, channel, state, dedupe_key, content)
       select id, $2, $2, case when state = 'delivered' and $1 <> 'done' then $2::timestamptz end, 1, 'first', state,
         case when $1 = 'done' then 'undeliverable' else state end, 'd', $3::jsonb
       from alert, unnest(array['delivered', 'undeliverable']) as state`,
      [name, new Date(at), content],
    );
  await run();
  const { rows } = await database.pool.query<{ what: string }>(
    `select fingerprint as what from alerts where details::text like '%203.0.113.7%'
     union all select a.fingerprint || ' ' || n.state from notifications n join alerts a on a.id = n.alert_id
       where content::text like '%203.0.113.7%' order by 1`,
  );
  expect(rows.map(({ what }) => what)).toEqual(["kept", "kept delivered", "kept undeliverable"]);
  expect(await doneDays()).toHaveLength(31);
});

test("without the key in use it fails and changes nothing, and asks for none while nothing is due", async () => {
  await ensurePartitions(database, [day(DUE)]);
  await storeEvents(database, 101, [personalEvent("a", DUE + 5, "203.0.113.7")], { expectNew: true });
  const openKey = async () => {
    throw new PseudonymKeyError("not here");
  };
  await expect(run({ openKey })).rejects.toMatchObject({ code: "PSEUDONYM_KEY" });
  expect(await ips()).toEqual({ a: "203.0.113.7" });
  await run({ openKey, now: NOW - DAY_MS });
});

test("killed in the middle it goes on; two at once and a flood in one moment change each event once", async () => {
  const count = 40_000;
  await ensurePartitions(database, [day(DUE)]);
  await insertMany(database, {
    zoneId: 101,
    from: DUE,
    count,
    ips: ["203.0.113.7", "198.51.100.1", "203.0.113.*"],
  });
  await database.pool.query(
    `insert into waf_events (zone_id, occurred_at, log_id, route, ip)
     select 102, to_timestamp($1::float8 / 1000), 'f' || n, 'search', '203.0.113.7' from generate_series(1, 12000) n`,
    [DUE + 1],
  );
  const program = fileURLToPath(new URL("./pseudonymise-process.ts", import.meta.url));
  const start = () => {
    const child = fork(program, [database.url, KEY_TEXT, String(NOW)]);
    onTestFinished(() => void child.kill("SIGKILL"));
    return child;
  };
  const replaced = async () => {
    const { rows } = await database.pool.query<{ n: number }>(
      "select count(*)::integer as n from waf_events where ip like 'anon-%'",
    );
    return rows[0]?.n ?? -1;
  };
  const child = start();
  await vi.waitFor(async () => expect(await replaced()).toBeGreaterThan(0), { timeout: 20_000, interval: 5 });
  child.kill("SIGKILL");
  await once(child, "exit");
  const half = await replaced();
  expect(half).toBeLessThan(38_000);
  expect(await doneDays()).toEqual([]);
  // The lease of the killed one is not given back.
  await database.pool.query("update leases set expires_at = null where name = 'pseudonymise-ips'");
  await Promise.all([run(), run()]);
  const left = await database.pool.query(
    "select from waf_events where ip in ('203.0.113.7', '198.51.100.1')",
  );
  expect(left.rowCount).toBe(0);
  const { rows } = await database.pool.query<{ ips: number; masked: number }>(
    "select count(distinct ip)::integer as ips, (count(*) filter (where ip like '%*'))::integer as masked from waf_events",
  );
  expect(rows).toEqual([{ ips: 3, masked: Math.floor(count / 3) }]);
  expect(await doneDays()).toEqual([day(DUE)]);
});
