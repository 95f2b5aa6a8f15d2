import { afterEach, beforeEach, expect, test } from "vitest";
import { parseConfig } from "#config/config.ts";
import { storeVerdict } from "#db/detection/verdicts.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { createManagePartitionsJob } from "#jobs/health/manage-partitions.ts";
import { DAY_MS } from "#lib/units.ts";
import { insertSpike } from "../alerts/insert-spike.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { storeEvents } from "../db/new-events.ts";
import { verdictOf } from "../detection/verdict/verdict-world.ts";
import { silent } from "../ingest/ingest-support.ts";
import { rollUp, runCommand } from "./erasure-world.ts";
import { personalEvent } from "./some-events.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(() => database.drop());

const day = (daysAgo: number) => new Date(NOW - daysAgo * DAY_MS).toISOString().slice(0, 10);

async function days(table: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1",
    [table],
  );
  return rows.map(({ name }) => name.slice(-8).replace(/^(....)(..)(..)$/, "$1-$2-$3"));
}

function manage(retention = parseConfig({}).retention) {
  const job = createManagePartitionsJob({ database, clock: () => NOW, log: silent, retention });
  return job.run({} as never, new AbortController().signal);
}

test("records go before events, and events before counts, each on its own day count", async () => {
  await ensurePartitions(database, [day(401), day(400), day(91), day(90), day(0)]);
  await manage();
  expect((await days("raw_blocks"))[0]).toBe(day(90));
  expect((await days("waf_events")).slice(0, 3)).toEqual([day(400), day(91), day(90)]);
  await Promise.all([manage(), manage()]);
  expect((await days("waf_events"))[0]).toBe(day(400));
});

test("counts, spikes, silences and resolved alerts go after theirs, open alerts with their spikes never, unreadable entries with the records", async () => {
  const at = (daysAgo: number) => new Date(NOW - daysAgo * DAY_MS);
  for (const [rule, daysAgo] of [
    ["old", 802],
    ["kept", 798],
  ] as const) {
    const start = new Date(Math.floor(at(daysAgo).getTime() / DAY_MS) * DAY_MS);
    await database.pool.query(
      "insert into rule_buckets (zone_id, rule_id, width, starts_at, total, logged) values (101, $1, 86400, $2, 1, 1)",
      [rule, start],
    );
    await database.pool.query(
      "insert into rule_peaks (zone_id, rule_id, starts_at, events, peak3, peak15, peak60) values (101, $1, $2, 1, 1, 1, 1)",
      [rule, start],
    );
    await database.pool.query(
      "insert into rule_metrics (zone_id, day, total, rule_id) values (101, $2, 1, $1)",
      [rule, start],
    );
    const id = await insertSpike(database.db, {
      openedAt: at(daysAgo + 1),
      closedAt: at(daysAgo),
      ruleId: rule,
    });
    await database.pool.query(
      `insert into alerts (fired_at, resolved_at, state, spike_id, kind, fingerprint, rule_id)
       values ($2, $2, 'resolved', $1, 'spike', $3, $3)`,
      [id, at(daysAgo), rule],
    );
    await storeVerdict(database.db, { id, zoneId: 101 }, { ...verdictOf("first", NOW), title: rule });
    await database.pool.query(
      "insert into zone_usual (zone_id, dimension, value, since) values (101, 'path', $1, $2)",
      [rule, at(daysAgo - 400)],
    );
    await database.pool.query(
      `insert into silences (starts_at, expires_at, created_by, reason, matchers)
       values ($1::timestamptz - interval '1 hour', $1, 'alice', $2, '[]')`,
      [at(daysAgo), rule],
    );
  }
  const open = await insertSpike(database.db, { openedAt: at(900), closedAt: at(899), ruleId: "open" });
  await database.pool.query(
    "insert into alerts (fired_at, spike_id, kind, fingerprint, rule_id) values (now(), $1, 'spike', 'open', 'open')",
    [open],
  );
  await database.pool.query(
    `insert into quarantined_entries (received_at, zone_id, route, reason, raw)
     values ($1, 101, 'list', 'x', 'old'), ($2, 101, 'list', 'x', 'kept')`,
    [at(92), at(88)],
  );
  await Promise.all([manage(), manage()]);
  const left = async (table: string, column: string) => {
    const { rows } = await database.pool.query<{ name: string }>(
      `select ${column} as name from ${table} order by 1`,
    );
    return rows.map(({ name }) => name);
  };
  for (const table of ["rule_buckets", "rule_peaks", "rule_metrics"])
    expect(await left(table, "rule_id")).toEqual(["kept"]);
  expect(await left("silences", "reason")).toEqual(["kept"]);
  for (const table of ["spikes", "alerts"]) expect(await left(table, "rule_id")).toEqual(["kept", "open"]);
  expect(await left("verdicts", "verdict ->> 'title'")).toEqual(["kept"]);
  expect(await left("zone_usual", "value")).toEqual(["kept"]);
  expect(await left("quarantined_entries", "convert_from(raw, 'UTF8')")).toEqual(["kept"]);
});

test("records never outlive addresses or events, counts never go before events", () => {
  const retention = (env: Record<string, string>) => parseConfig(env).retention;
  expect(retention({ LONGWATCH_IP_DAYS: "7" })).toMatchObject({ rawDays: 7, ipDays: 7, eventDays: 400 });
  expect(retention({ LONGWATCH_RETENTION_DAYS: "30" })).toMatchObject({
    rawDays: 30,
    eventDays: 30,
    rollUpDays: 800,
  });
  expect(retention({ LONGWATCH_RETENTION_DAYS: "2000" })).toMatchObject({ rollUpDays: 2_000 });
  expect(() => parseConfig({ LONGWATCH_IP_DAYS: "3", LONGWATCH_PSEUDONYM_KEY: "short" })).toThrow(
    'LONGWATCH_IP_DAYS: "3": must be a whole number of days from 4 to 36500\nLONGWATCH_PSEUDONYM_KEY: [secret]: must be 32',
  );
});

test("a listed event whose record is past its retention is no difference to verify, one that is not is", async () => {
  await ensurePartitions(database, [day(95), day(5)]);
  const listed = (id: string, daysAgo: number) =>
    personalEvent(id, NOW - daysAgo * DAY_MS, "203.0.113.7", { route: "list" });
  await storeEvents(database, 101, [listed("old", 95)], { expectNew: true });
  await rollUp(database);
  await manage();
  const old = await runCommand(database, "verify --zone 101 --from -96d --to -94d", { now: NOW });
  expect(old.out).toContain("raw records       0 events of the list: no difference");
  expect(old.out).toContain(`before ${day(5)} UTC: records are past their retention`);
  expect(old.code).toBe(0);
  await storeEvents(database, 101, [listed("young", 5)], { expectNew: true });
  await rollUp(database);
  expect((await runCommand(database, "verify --zone 101 --from -6d --to -4d", { now: NOW })).code).toBe(1);
});

test("the retention of each class is shown with its oldest row", async () => {
  await ensurePartitions(database, [day(300), day(20)]);
  const event = (id: string, daysAgo: number, ip: string) => personalEvent(id, NOW - daysAgo * DAY_MS, ip);
  await storeEvents(database, 101, [event("old", 300, "203.0.113.*"), event("young", 20, "203.0.113.7")], {
    expectNew: true,
  });
  const { out, code } = await runCommand(database, "privacy show", { now: NOW });
  expect(code).toBe(0);
  expect(out.split("\n")).toEqual([
    "CLASS                    KEPT FOR   OLDEST                 AGE     SETTING",
    "records as received      90 days    none stored                    LONGWATCH_RAW_DAYS",
    "unreadable entries       90 days    none stored                    LONGWATCH_RAW_DAYS",
    "full addresses           90 days    2026-10-31 12:00 UTC   20 d    LONGWATCH_IP_DAYS",
    "events                   400 days   2026-01-24 12:00 UTC   300 d   LONGWATCH_RETENTION_DAYS",
    "counts, spikes, alerts   800 days   none stored                    LONGWATCH_ROLL_UP_DAYS",
    "no pseudonym or tombstone was made yet",
    "",
  ]);
  const { classes } = JSON.parse((await runCommand(database, "privacy show --json", { now: NOW })).out) as {
    classes: { oldest: string | null }[];
  };
  expect(classes.map(({ oldest }) => oldest)).toContain(new Date(NOW - 300 * DAY_MS).toISOString());
});
