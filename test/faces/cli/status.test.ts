import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeRuntimeFile } from "#app/runtime-file.ts";
import { quarantineEntries } from "#db/ingest/quarantine.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { decideHours } from "#db/proof/covered-hours.ts";
import { advanceSearch } from "#db/proof/horizons.ts";
import { watchZones } from "#db/proof/platform-health.ts";
import { requestBudgets } from "#db/schema/service.ts";
import { statusCommand } from "#faces/cli/status/status.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { horizonAt, startOfHour, toDay } from "#model/horizon.ts";
import { UNKNOWN_FACTS } from "#model/request-facts.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { FIRST_WATCHED } from "#proof/rules/judge-hour.ts";
import { insertSpike } from "../../alerts/insert-spike.ts";
import { shareDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { createTestDatabase } from "../../support/database.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { writeSchedule } from "../../support/write-schedule.ts";
import { ask } from "../http/api/api-world.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { openAlertRows } from "./alert-rows.ts";
import { runStoreCommand } from "./run-store-command.ts";

/** Ten minutes into an hour. */
const NOW = Date.UTC(2026, 10, 20, 15, 10);
/** The time of Postgres, whose clock is measured. */
const AROUND_NOW = /^2026-11-20T15:(09:5|10:0)/;
const database = await shareDatabase();

function ran(environment: Record<string, string>, ...args: string[]) {
  return runStoreCommand(statusCommand, environment, args, { now: NOW });
}

async function run(environment: Record<string, string>, ...args: string[]): Promise<string> {
  return (await ran(environment, ...args)).out;
}

/** A process of the service that was last alive so many seconds ago. */
async function putReplica(
  secondsAgo: number,
  { host = "one", roles = ["ingest", "derive", "alerts", "http"], isStopped = false } = {},
): Promise<void> {
  await database.pool.query(
    `insert into replicas (id, host, pid, version, roles, zone_ids, started_at, seen_at, stopped_at)
    values ($1, $1, 4711, '0.1.0', $2, '{101,102}', '2026-11-20T15:00:00Z', now() - $3 * interval '1 second',
      case when $4 then now() - $3 * interval '1 second' end)`,
    [host, roles, secondsAgo, isStopped],
  );
}

/** The output without the lines about processes, whose ages are of the real clock. */
function withoutService(out: string): string {
  // The database grows between two commands.
  const lines = out.split("\n").filter((line) => !line.startsWith("storage: "));
  return lines.slice(lines.findIndex((line) => /^(?:zone|Nothing|No data)/.test(line))).join("\n");
}

function event(logId: string, occurredAt: number): WafEvent {
  const dimensions = {
    feature: "",
    ruleId: "1",
    ip: "",
    ja4: "",
    ua: "",
    url: "",
    asn: "",
    country: "",
    action: "",
  };
  return { logId, occurredAt, route: "search", message: null, ...dimensions, ...UNKNOWN_FACTS };
}

async function fill(): Promise<void> {
  const times = [NOW - 30_000, NOW - 2 * HOUR_MS, NOW - 2 * HOUR_MS - 1];
  await ensurePartitions(database, [toDay(NOW)]);
  await storeEvents(
    database,
    101,
    times.map((at, n) => event(`e${n}`, at)),
    { expectNew: true },
  );
  await inTransaction(database, async (transaction) => {
    const poison = { route: "list" as const, day: null, reason: "unreadable", raw: Buffer.from("null") };
    await quarantineEntries(transaction.tx, 101, [poison]);
  });
  for (const hoursAgo of [1, 2]) {
    const startsAt = startOfHour(NOW) - hoursAgo * HOUR_MS;
    await advanceSearch(database.db, 101, { startsAt, searchedThrough: startsAt + HOUR_MS });
  }
  const verdict = {
    startsAt: startOfHour(NOW) - 2 * HOUR_MS,
    state: "sealed",
    reason: null,
    evidence: {},
    looks: null,
  } as const;
  await decideHours(database.db, 101, [verdict], NOW);
  await advanceSearch(database.db, 101, { startsAt: startOfHour(NOW), searchedThrough: NOW });
  await advanceSearch(database.db, 102, { startsAt: startOfHour(NOW), searchedThrough: NOW });
  await insertSpike(database.db, { openedAt: new Date(NOW) });
}

test("it shows of each zone what is stored, how fresh, and which hours were searched and sealed", async () => {
  await fill();
  await putReplica(4);
  const out = await run({ DATABASE_URL: database.url });
  expect(out).toMatch(
    /^storage: database \d+ MB \(records as received \d+ kB\), archive 0 kB; days until the disk is full: unknown, the database's disk cannot be read from here$/m,
  );
  expect(withoutService(out)).toBe(
    [
      "zone 101   3 events in the last 72 hours, newest 30 s ago",
      `  ${"·".repeat(70)}█▒░`,
      "  learning until Saturday 13:09 UTC: only attacks over the fixed lines notify",
      "  1 unreadable entry in quarantine (quarantine list --zone 101)",
      "zone 102   0 events in the last 72 hours, none yet",
      `  ${"·".repeat(72)}░`,
      "1 open spike, 0 unresolved alerts, 0 notifications to deliver",
      "",
    ].join("\n"),
  );
});

test("as JSON it answers as GET /api/v1/status does, and lists what needs attention", async () => {
  await fill();
  await putReplica(4);
  const status = JSON.parse(await run({ DATABASE_URL: database.url }, "--json")) as Record<string, unknown>;
  const iso = (at: number) => new Date(at).toISOString();
  expect(status).toMatchObject({
    now: expect.stringMatching(AROUND_NOW),
    spikesOpen: 1,
    alertsFiring: 0,
    notificationsPending: 0,
    zones: [
      {
        id: 101,
        learningUntil: "2026-11-21T13:09:00.000Z",
        recentEvents: 3,
        newestEventAt: iso(NOW - 30_000),
        searchedThrough: iso(NOW),
        quarantined: 1,
      },
      {
        id: 102,
        learningUntil: null,
        recentEvents: 0,
        newestEventAt: null,
        searchedThrough: iso(NOW),
        quarantined: 0,
      },
    ],
    service: { missingRoles: [], processes: [{ host: "one", pid: 4711, state: "alive" }] },
    attention: [],
    storage: { dayBytes: expect.any(Number), freeBytes: null, daysLeft: null },
    erasedFiles: [],
  });
  const { attention, storage: _storage, erasedFiles: _files, ...answer } = status;
  const { key } = await makeKey(database, "reader");
  const { url } = await startArchive(database.url);
  const served = await ask(url, "/api/v1/status", key);
  expect(Object.keys(answer)).toEqual(Object.keys(served));
  expect(attention).toEqual([]);
});

test("status of a service elsewhere is as on the database, and needs a key of every zone for the service", async () => {
  await fill();
  await putReplica(4);
  const { url } = await startArchive(database.url, {}, { clock: () => NOW });
  const askWith = async (more: { zoneIds?: number[] }) => {
    const { key } = await makeKey(database, "reader", more);
    return ran({ LONGWATCH_URL: url, LONGWATCH_KEY: key });
  };
  const remote = await askWith({});
  const local = await ran({ DATABASE_URL: database.url });
  expect({ ...remote, out: withoutService(remote.out) }).toEqual({
    ...local,
    out: withoutService(local.out),
  });
  expect(remote.out).toMatch(/^Running: last alive /);
  const { code, out } = await askWith({ zoneIds: [102] });
  expect(code).toBe(0);
  expect(out).toMatch(/^zone 102   0 events in the last 72 hours, none yet\n/);
});

test("exit code 0 needs a live process for each role; the role http is optional", async () => {
  await fill();
  const environment = { DATABASE_URL: database.url };
  await putReplica(4, { host: "one", roles: ["ingest", "derive"] });
  const partly = await ran(environment);
  expect(partly.code).toBe(1);
  expect(partly.out).toMatch(/^Running in part: no live process has alerts \(never alive\)\n/);
  await putReplica(5, { host: "two", roles: ["alerts"] });
  const whole = await ran(environment);
  expect(whole).toMatchObject({ code: 0, err: "" });
  expect(whole.out).toMatch(/^Running: last alive [4-9] s ago, .* UTC\nPROCESS +ROLES +STATE +LAST ALIVE/);
  expect(whole.out).toMatch(/one 4711 +ingest, derive +alive +[4-9] s ago +2026-11-20 15:00 +0\.1\.0\n/);
});

test.each([
  ["was killed", false, "silent"],
  ["was stopped", true, "stopped"],
])(
  "a service that %s is named with the time it was last alive, exit code 1",
  async (_how, isStopped, state) => {
    await fill();
    await putReplica(420, { isStopped });
    const { code, out } = await ran({ DATABASE_URL: database.url });
    expect(code).toBe(1);
    expect(out).toMatch(/^Not running: last alive 7 min ago, \d{4}-\d\d-\d\d /);
    expect(out).toMatch(new RegExp(`one 4711 .* ${state} +7 min ago`));
    expect(out).toContain("No live process has the roles ingest, derive, alerts");
  },
);

test("a database that the service was never alive on is not well", async () => {
  await fill();
  const { code, out } = await ran({ DATABASE_URL: database.url });
  expect(code).toBe(1);
  expect(out).toMatch(/^Not running: no service has ever run on this database\.\n/);
});

test("an hour of the strip that is lost is exit code 3, and 1 if more needs attention", async () => {
  await putReplica(4);
  const startsAt = startOfHour(horizonAt(NOW));
  for (let hour = startsAt; hour < NOW; hour += HOUR_MS)
    await advanceSearch(database.db, 101, { startsAt: hour, searchedThrough: hour + HOUR_MS });
  const ended = Array.from({ length: 72 }, (_, index) => ({
    startsAt: startsAt + index * HOUR_MS,
    state: index === 0 ? ("gap" as const) : ("sealed" as const),
    reason: index === 0 ? "never searched" : null,
    evidence: {},
    looks: null,
  }));
  await decideHours(database.db, 101, ended, NOW);
  const lost = await ran({ DATABASE_URL: database.url });
  expect(lost.code).toBe(3);
  expect(lost.out).toContain(
    "  Zone 101: 1 hour between 2026-11-17 15:00 and 2026-11-17 16:00 UTC can never be proven complete: npm run -s longwatch -- gaps --zone 101",
  );
  await database.pool.query("insert into channel_states (channel, state) values ('slack', 'disabled')");
  expect((await ran({ DATABASE_URL: database.url })).code).toBe(1);
});

test.each([
  ["a database that was never started on", false],
  ["an empty one", true],
])("on %s it says that nothing is stored, and what to do", async (_which, isMigrated) => {
  const empty = await createTestDatabase();
  onTestFinished(() => empty.drop());
  const environment = { DATABASE_URL: isMigrated ? database.url : empty.url };
  const { code, out } = await ran(environment);
  expect(code).toBe(1);
  expect(withoutService(out)).toMatch(
    /^No data is stored yet: run npm start\.\n0 open spikes, 0 unresolved alerts, 0 notifications to deliver\n/,
  );
  expect(JSON.parse(await run(environment, "--json"))).toMatchObject({
    now: expect.stringMatching(AROUND_NOW),
    zones: [],
    spikesOpen: 0,
  });
});

test("without a configured database it asks that of the service that runs here", async () => {
  await fill();
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-status-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeRuntimeFile(folder, { pid: process.ppid, databaseUrl: database.url, httpUrl: null });
  expect(await run({ LONGWATCH_DATA_DIR: folder })).toContain("zone 101   3 events");
});

test("a database that cannot be reached is an error that names it and what to look at", async () => {
  const environment = { DATABASE_URL: "postgres://127.0.0.1:1/none" };
  const { code, out, err } = await runStoreCommand(statusCommand, environment, [], { now: NOW });
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toBe(
    "longwatch status: Postgres at 127.0.0.1:1 cannot be reached (ECONNREFUSED): check that it runs and that DATABASE_URL is correct\n",
  );
});

test("a usage mistake exits with code 2 and a suggestion", async () => {
  const { code, err } = await runStoreCommand(statusCommand, {}, ["--jsn", "1", "all"], { now: NOW });
  expect(code).toBe(2);
  expect(err).toBe(
    [
      "longwatch status: 2 mistakes, nothing was read or stored",
      '  - "--jsn" is not an argument or option of this command: did you mean --json?',
      '  - "all" is not an argument or option of this command',
      "",
    ].join("\n"),
  );
});

test("an hour that was not watched from its beginning is not shown as lost", async () => {
  const startsAt = startOfHour(horizonAt(NOW));
  await advanceSearch(database.db, 101, { startsAt, searchedThrough: startsAt + HOUR_MS });
  const gap = { startsAt, state: "gap", reason: FIRST_WATCHED, evidence: {}, looks: null } as const;
  await decideHours(database.db, 101, [gap], NOW);
  expect(await run({ DATABASE_URL: database.url })).toContain("\n  -░");
});

/** A zone of the running service whose last poll ended so many minutes ago. */
async function watchZone(zoneId: number, minutesAgo: number): Promise<void> {
  const polledAt = NOW - minutesAgo * MINUTE_MS;
  await advanceSearch(database.db, zoneId, { startsAt: startOfHour(polledAt), searchedThrough: polledAt });
  await watchZones(database.db, [zoneId], { nowMs: NOW - 2 * HOUR_MS, breakMs: 3 * HOUR_MS });
  await watchZones(database.db, [zoneId], { nowMs: NOW - MINUTE_MS, breakMs: 3 * HOUR_MS });
}

const inMinutes = (minutes: number) => new Date(NOW + minutes * MINUTE_MS);

test("a zone without a successful poll for five minutes is named, exit code 1, and other zones are not", async () => {
  await putReplica(4);
  await watchZone(101, 6);
  await watchZone(102, 4);
  // Not a zone of the service any more.
  await advanceSearch(database.db, 103, { startsAt: startOfHour(NOW), searchedThrough: NOW - HOUR_MS });
  const environment = { DATABASE_URL: database.url };
  const { code, out } = await ran(environment);
  expect(code).toBe(1);
  expect(out).toContain(
    "\n  Zone 101: no poll has succeeded since 2026-11-20 15:04 UTC. Longwatch cannot detect attacks there\n",
  );
  expect(out).not.toMatch(/Zone 10[23]: no poll/);
  const rarely = writeSchedule(makeTemporaryFolder("status"), { "poll-events": "0 */5 * * * *" });
  expect(await ran({ ...environment, ...rarely })).toMatchObject({ code: 0 });
});

test.each([
  {
    zoneId: 101,
    pausedUntil: inMinutes(3),
    is: "the platform refuses zone 101 (429) until 2026-11-20 15:13 UTC",
  },
  {
    zoneId: 101,
    pausedUntil: inMinutes(-1),
    is: "the platform has refused zone 101 (429) since 2026-11-20 15:05 UTC",
  },
  {
    zoneId: null,
    pausedUntil: inMinutes(1),
    is: "the platform refuses the requests for every zone (429) until 2026-11-20 15:11 UTC",
  },
])("what refuses a zone that is not polled is said: $is", async ({ zoneId, pausedUntil, is }) => {
  await putReplica(4);
  await watchZone(101, 6);
  const refusedSince = zoneId === null ? null : inMinutes(-5);
  const row = {
    name: `edge.${zoneId}`,
    zoneId,
    tokens: 0,
    refilledAt: inMinutes(-5),
    pausedUntil,
    refusedSince,
  };
  await database.db.insert(requestBudgets).values(row);
  const environment = { DATABASE_URL: database.url };
  const text = `Zone 101: no poll has succeeded since 2026-11-20 15:04 UTC: ${is}. Longwatch cannot detect attacks there`;
  expect((await ran(environment)).out).toContain(`\n  ${text}\n`);
  expect(JSON.parse(await run(environment, "--json"))).toMatchObject({
    attention: [{ kind: "unpolled", zoneId: 101, text }],
  });
  const { key } = await makeKey(database, "reader");
  const { url } = await startArchive(database.url, {}, { clock: () => NOW });
  expect(await ask(url, "/api/v1/overview", key)).toMatchObject({
    attention: [{ kind: "unpolled", zoneId: 101, text }],
  });
});

test("channels that do not deliver are named, with the command that shows why, exit code 1", async () => {
  await fill();
  await putReplica(4);
  await database.pool.query("insert into channel_states (channel, state) values ('slack', 'disabled')");
  const { code, out } = await ran({ DATABASE_URL: database.url });
  expect(code).toBe(1);
  expect(out).toContain(
    "Channel slack does not deliver (pending: 0, given up: 0): circuit disabled; disabled until a restart or another configuration: npm run -s longwatch -- channels test slack\n",
  );
});

test("a channel that the configuration no longer has needs no attention", async () => {
  await fill();
  await putReplica(4);
  await database.pool.query("insert into channel_states (channel, state) values ('slack', 'disabled')");
  const webhook = {
    LONGWATCH_WEBHOOK_URL: "https://hooks.example.com/1",
    LONGWATCH_WEBHOOK_SECRET: `whsec_${Buffer.alloc(24, 1).toString("base64")}`,
  };
  expect(await ran({ DATABASE_URL: database.url, ...webhook })).toMatchObject({ code: 0 });
});

test("a notification that was given up is exit code 1 until a later message has overtaken it", async () => {
  await putReplica(4);
  const rows = openAlertRows(database);
  const alertId = await rows.fire({ ruleId: "931130" });
  await database.pool.query(
    "update notifications set state = 'undeliverable', last_error = 'refused', created_at = $1",
    [new Date(NOW - HOUR_MS)],
  );
  const { code, out } = await ran({ DATABASE_URL: database.url });
  expect(code).toBe(1);
  expect(out).toMatch(/\n {2}\d dead notifications: npm run -s longwatch -- deliveries list --state dead\n/);
  await database.pool.query(
    `insert into notifications (alert_id, channel, transition, dedupe_key, reason, state, content, next_attempt_at)
    select alert_id, channel, transition + 1, dedupe_key || 'later', reason, 'delivered', content, next_attempt_at
    from notifications where alert_id = $1`,
    [alertId],
  );
  expect(await ran({ DATABASE_URL: database.url })).toMatchObject({ code: 0 });
});

test("an unresolved alert of Longwatch about itself is exit code 1", async () => {
  await putReplica(4);
  await openAlertRows(database).fire({ ruleId: "931130" });
  await database.pool.query("update notifications set state = 'delivered'");
  expect(await ran({ DATABASE_URL: database.url })).toMatchObject({ code: 0 });
  await database.pool.query("update alerts set kind = 'self'");
  const { code, out } = await ran({ DATABASE_URL: database.url });
  expect(code).toBe(1);
  expect(out).toContain(
    "1 unresolved alert of Longwatch about itself: npm run -s longwatch -- alerts list --kind self",
  );
});

test("an hour near its loss needs attention, but not during the first copy of its zone", async () => {
  await putReplica(1);
  const { pool, url } = database;
  const oldest = startOfHour(horizonAt(NOW)) + HOUR_MS;
  const minutesAgo = (minutes: number) => new Date(NOW - minutes * 60_000);
  await pool.query("insert into coverage_windows (zone_id, starts_at) values (101, $1)", [new Date(oldest)]);
  // The platform had begun to forget the first two hours of the zone when it was first watched.
  await pool.query(
    "insert into coverage_windows (zone_id, starts_at) select 101, $1::timestamptz - n * interval '1 hour' from generate_series(1, 2) n",
    [new Date(oldest)],
  );
  const near = /Zone 101: in 4[78] minutes the platform begins to forget an hour that is not proven complete/;
  const seen = async () => {
    const { code, out } = await ran({ DATABASE_URL: url });
    return { code, isNear: near.test(out) };
  };
  expect(await seen()).toEqual({ code: 1, isNear: true });

  await pool.query("insert into platform_health (zone_id, watched_since) values (101, $1)", [minutesAgo(10)]);
  expect(await seen()).toEqual({ code: 0, isNear: false });

  // After a break the watch begins again, and an hour of before it is sealed.
  await pool.query(
    "insert into coverage_windows (zone_id, starts_at, state, sealed_at, evidence) values (101, $1, 'sealed', $2, '{}')",
    [new Date(oldest + HOUR_MS), minutesAgo(90)],
  );
  expect(await seen()).toEqual({ code: 1, isNear: true });
});
