import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { ensurePartitions } from "../../db/partitions.ts";
import { quarantineEntries } from "../../db/queries/quarantine.ts";
import { decideHours } from "../../db/queries/seal-windows.ts";
import { advanceSearch } from "../../db/queries/search-coverage.ts";
import { inTransaction } from "../../db/transaction.ts";
import { statusCommand } from "../../src/cli/status.ts";
import { HOUR_MS, horizonAt, startOfHour, toDay } from "../../src/coverage/horizon.ts";
import { FIRST_WATCHED } from "../../src/coverage/judge-hour.ts";
import type { WafEvent } from "../../src/ingest/waf-event.ts";
import { writeRuntimeFile } from "../../src/runtime-file.ts";
import { insertSpike } from "../alert/insert-spike.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { storeEvents } from "../db/new-events.ts";
import { createTestDatabase } from "../support/database.ts";
import { runStoreCommand } from "./run-store-command.ts";

/** Ten minutes into an hour. */
const NOW = Date.UTC(2026, 10, 20, 15, 10);
let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(async () => {
  await database.drop();
});

async function run(environment: Record<string, string>, ...args: string[]): Promise<string> {
  return (await runStoreCommand(statusCommand, environment, args, { now: NOW })).out;
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
  return { logId, occurredAt, route: "search", message: null, ...dimensions };
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
  expect(await run({ DATABASE_URL: database.url })).toBe(
    [
      "zone 101   3 events of the last 72 hours, newest 30 s ago",
      `  ${"·".repeat(70)}█▒░`,
      "  1 unreadable entry set aside",
      "zone 102   0 events of the last 72 hours, none yet",
      `  ${"·".repeat(72)}░`,
      "1 open spike, 0 unresolved alerts, 0 notifications to deliver",
      "",
    ].join("\n"),
  );
});

test("as JSON it says the same in milliseconds, one document on stdout", async () => {
  await fill();
  const status = JSON.parse(await run({ DATABASE_URL: database.url }, "--json")) as Record<string, unknown>;
  const live = { startsAt: startOfHour(NOW), searchedThrough: NOW };
  expect(status).toMatchObject({
    now: NOW,
    spikesOpen: 1,
    alertsFiring: 0,
    notificationsPending: 0,
    zones: [
      { zoneId: 101, events: 3, newestAt: NOW - 30_000, searchedThrough: NOW, quarantined: 1 },
      { zoneId: 102, events: 0, newestAt: null, searchedThrough: NOW, quarantined: 0, hours: [live] },
    ],
  });
});

test.each([
  ["a database that was never started on", false],
  ["an empty one", true],
])("on %s it says that nothing is stored, and what to do", async (_which, isMigrated) => {
  const empty = await createTestDatabase();
  onTestFinished(() => empty.drop());
  const environment = { DATABASE_URL: isMigrated ? database.url : empty.url };
  expect(await run(environment)).toBe(
    "Nothing is stored yet: run npm start.\n0 open spikes, 0 unresolved alerts, 0 notifications to deliver\n",
  );
  expect(JSON.parse(await run(environment, "--json"))).toMatchObject({ now: NOW, zones: [], spikesOpen: 0 });
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
    "longwatch status: Postgres at 127.0.0.1:1 cannot be reached (ECONNREFUSED): does it run, and is DATABASE_URL right?\n",
  );
});

test("what is typed wrong is exit code 2, with what was probably meant", async () => {
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

test("channels that do not deliver are named, with the command that shows why", async () => {
  await fill();
  await database.pool.query("insert into channel_states (channel, state) values ('slack', 'disabled')");
  expect(await run({ DATABASE_URL: database.url })).toContain(
    "Does not deliver: slack: npm run -s longwatch -- deliveries list\n",
  );
});
