import { eq } from "drizzle-orm";
import pino from "pino";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { recordPlatformHealth, watchEdge } from "#app/watch-edge.ts";
import { parseConfig } from "#config/config.ts";
import { noteDamage } from "#db/archive/bring-file.ts";
import { readDailyGrowth } from "#db/health/service-status.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { alerts } from "#db/schema/alerts.ts";
import { coverageWindows } from "#db/schema/coverage.ts";
import { ingestCursors } from "#db/schema/ingest.ts";
import { openHeartbeat } from "#delivery/receivers/post.ts";
import { createReportServiceJob } from "#jobs/alerts/report-service.ts";
import { createSendHeartbeatJob } from "#jobs/health/send-heartbeat.ts";
import type { DiskSpace } from "#lib/disk.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { openEmulator } from "../emulator/support.ts";
import { createReplica, ZONE } from "../faults/replica.ts";
import { resolveAlert } from "../operations/act-by-hand.ts";
import { startReplyQueue } from "../platform/support/reply-queue.ts";
import { createAlertWorld } from "./alert-world.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const never = new AbortController().signal;
const silent = pino({ level: "silent" });
let database: MigratedDatabase;
let now: number;
const clock = () => now;

beforeEach(async () => {
  database = await createMigratedDatabase();
  now = NOW;
});
afterEach(() => database.drop());

const deps = () => ({ database, clock, log: silent, zoneIds: [ZONE], pollEveryMs: 30_000 });

/** The job as one replica runs it, and what the channel "chat" was told: `transition reason headline`. */
function createReporter(
  over: { zoneIds?: number[]; pollEveryMs?: number; readDisk?: () => DiskSpace | null } = {},
) {
  const afterAlerts = async () => undefined;
  const job = createReportServiceJob({
    ...deps(),
    routing: () => routeToAll(["chat"]),
    afterAlerts,
    ...over,
  });
  const world = createAlertWorld(database);
  return {
    look: () => job.run({} as never, never),
    async told() {
      const messages = await world.messages();
      return messages.map(({ transition, reason, message }) => `${transition} ${reason} ${message.headline}`);
    },
    alerts: world.alerts,
  };
}

/** A search of the zone that came to its end at `at`. */
async function poll(at: number, zoneId = ZONE): Promise<void> {
  const startsAt = new Date(at - (at % HOUR_MS));
  const searchedThrough = new Date(at);
  await database.db
    .insert(coverageWindows)
    .values({ zoneId, startsAt, searchedThrough })
    .onConflictDoUpdate({
      target: [coverageWindows.zoneId, coverageWindows.startsAt],
      set: { searchedThrough },
    });
}

/** Everything that polls stops at NOW; the job goes on looking every minute for so long. */
async function lookFor(reporter: { look(): Promise<unknown> }, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    now += MINUTE_MS;
    await reporter.look();
  }
}

test("a disk with less free than a day of events takes is one alert, over when clearly more is free", async () => {
  // A day of rows; Postgres's log may take two more gigabytes at most.
  await ensurePartitions(database, ["2026-11-19"]);
  await database.pool.query(`insert into waf_events (occurred_at, zone_id, log_id, route, feature, rule_id, ip, ja4, ua,
      url, asn, country, action)
    select '2026-11-19 12:00Z'::timestamptz + n * interval '1 ms', 101, 'log' || n, 'search', '', '1', '', '', '', '',
      '', '', '' from generate_series(1, 1000) n`);
  const { dayBytes, logBytes } = await readDailyGrowth(database.db, NOW);
  expect(dayBytes).toBeGreaterThan(100_000);
  expect(logBytes).toBeLessThanOrEqual(2 * 1_024 ** 3);
  // Whatever the log takes at the moment: of other tests' databases too.
  const much = dayBytes * 1.25 + 2 * 1_024 ** 3;
  let freeBytes = much * 1.3;
  const reporter = createReporter({
    readDisk: () => ({ folder: "/data/longwatch", mountPoint: "/data", freeBytes, totalBytes: 10e9 }),
  });
  await poll(now + HOUR_MS);
  await reporter.look();
  expect(await reporter.told()).toEqual([]);

  freeBytes = dayBytes;
  await Promise.all([reporter.look(), reporter.look()]);
  await lookFor(reporter, 3);
  const [first, ...rest] = await reporter.told();
  expect(first).toMatch(
    /^1 first The disk may be full within a day: the disk of \/data\/longwatch \(mounted at \/data\) has \d+ kB of 10\.0 GB free\. One more day of events may take .* Free space or enlarge the disk$/,
  );
  expect(rest).toEqual([]);

  freeBytes = much * 1.3;
  await lookFor(reporter, 1);
  expect((await reporter.told()).slice(1)).toEqual([
    expect.stringContaining("2 resolved The disk has enough free space again"),
  ]);
});

test("a refused key is one alert over all zones and replicas, and over once events are given again", async () => {
  const emulator = await openEmulator({ historyHours: 1, clock });
  const observer = recordPlatformHealth({ database, clock, log: silent });
  const replica = createReplica({
    databaseUrl: database.url,
    platformUrl: emulator.url,
    accessKey: emulator.accessKey,
    clock: () => emulator.now(),
    wrapEdge: (edge) => watchEdge(edge, observer),
  });
  onTestFinished(() => replica.close());
  const reporter = createReporter();
  await replica.run("poll-events");
  emulator.addFault({ kind: "unauthorized" });
  now += MINUTE_MS;
  await expect(replica.run("poll-events")).rejects.toMatchObject({ code: "EDGE_UNAUTHORIZED" });
  await reporter.look();
  expect(await reporter.told()).toEqual([]);
  now += 2 * MINUTE_MS;
  await expect(replica.run("walk-days")).rejects.toMatchObject({ code: "EDGE_UNAUTHORIZED" });
  await Promise.all([reporter.look(), reporter.look()]);
  await lookFor(reporter, 30);
  const refused = "The platform refuses the access key (EDGE_UNAUTHORIZED). No events of zone 101 are copied";
  expect(await reporter.told()).toEqual([`1 first ${refused}`]);
  expect(await reporter.alerts()).toMatchObject([{ kind: "self", zoneId: null, state: "firing" }]);

  emulator.clearFaults();
  await replica.run("poll-events");
  await Promise.all([reporter.look(), reporter.look()]);
  expect((await reporter.told()).slice(1)).toEqual(["2 resolved The platform accepts the access key again"]);
});

test("a failure that is not the key's fault is no refusal, and a refusal of one zone names it", async () => {
  const observer = recordPlatformHealth({ database, clock, log: silent });
  const reporter = createReporter({ zoneIds: [ZONE, 102] });
  await poll(now);
  await poll(now, 102);
  await observer.answered(ZONE);
  await observer.refused(102, "EDGE_FORBIDDEN");
  now += 2 * MINUTE_MS;
  await reporter.look();
  const [told] = await reporter.told();
  expect(told).toContain("(EDGE_FORBIDDEN). No events of zone 102 are copied");
  await observer.refused(ZONE, "EDGE_FORBIDDEN");
  now += 2 * MINUTE_MS;
  await reporter.look();
  expect(await reporter.told()).toHaveLength(1);
  expect(JSON.stringify((await reporter.alerts())[0]?.details)).toContain("No events of zones 101, 102");

  const emulator = await openEmulator({ historyHours: 1, clock });
  emulator.addFault({ kind: "status", status: 500, operation: "any" });
  const replica = createReplica({
    databaseUrl: database.url,
    platformUrl: emulator.url,
    accessKey: emulator.accessKey,
    clock,
    wrapEdge: (edge) =>
      watchEdge(edge, {
        answered: async () => undefined,
        refused: () => Promise.reject(new Error("refused")),
      }),
  });
  onTestFinished(() => replica.close());
  await expect(replica.run("poll-events")).rejects.toMatchObject({ code: "EDGE_UNAVAILABLE" });
});

test("a refusal on one route while the other is answered is nobody's alarm", async () => {
  const observer = recordPlatformHealth({ database, clock, log: silent });
  const reporter = createReporter();
  for (let minute = 0; minute < 10; minute++) {
    await observer.refused(ZONE, "EDGE_FORBIDDEN");
    now += 30_000;
    await observer.answered(ZONE);
    now += 30_000;
    await reporter.look();
  }
  expect(await reporter.told()).toEqual([]);
});

test("a zone without a poll for 20 minutes causes one alert, which resolves at the next poll", async () => {
  const reporter = createReporter({ zoneIds: [ZONE, 102] });
  await poll(NOW);
  await reporter.look();
  for (let minute = 1; minute <= 30; minute++) {
    now += MINUTE_MS;
    await poll(now, 102);
    await Promise.all([reporter.look(), reporter.look()]);
    const told = await reporter.told();
    expect(told, `after ${minute} minutes: ${told.join("; ")}`).toHaveLength(minute >= 20 ? 1 : 0);
  }
  const since =
    "Zone 101: no poll has succeeded since 2026-11-20 15:30 UTC. Longwatch cannot detect attacks there";
  expect(await reporter.told()).toEqual([`1 first ${since}`]);
  await poll(now);
  await Promise.all([reporter.look(), reporter.look()]);
  expect((await reporter.told()).slice(1)).toEqual(["2 resolved Zone 101: events are polled again"]);
});

test("a zone that was never polled causes an alert; a zone that only the list reads causes none", async () => {
  const reporter = createReporter({ zoneIds: [ZONE, 102] });
  await reporter.look();
  for (let minute = 0; minute < 25; minute++) {
    const row = {
      zoneId: 102,
      day: "2026-11-20",
      fence: 1,
      passResult: "short" as const,
      startedAt: clock(),
    };
    const startedAt = new Date(row.startedAt);
    await database.db
      .insert(ingestCursors)
      .values({ ...row, startedAt })
      .onConflictDoUpdate({ target: [ingestCursors.zoneId, ingestCursors.day], set: { startedAt } });
    await lookFor(reporter, 1);
  }
  expect(await reporter.told()).toEqual([
    "1 first Zone 101: no poll has succeeded yet. Longwatch cannot detect attacks there",
  ]);
});

test("after a day off the service is given time to poll, and a slow setting is no alarm", async () => {
  const reporter = createReporter();
  await poll(NOW);
  await reporter.look();
  now += 24 * HOUR_MS;
  await reporter.look();
  await lookFor(reporter, 19);
  expect(await reporter.told()).toEqual([]);
  await lookFor(reporter, 1);
  expect(await reporter.told()).toHaveLength(1);

  await database.db.delete(alerts);
  const slow = createReporter({ pollEveryMs: HOUR_MS });
  await poll(now);
  await lookFor(slow, 170);
  expect(await slow.told()).toEqual([]);
});

test("an alert that a person resolves while its cause goes on fires again, as the same episode", async () => {
  const reporter = createReporter();
  await poll(NOW);
  await reporter.look();
  await lookFor(reporter, 21);
  const [alert] = await reporter.alerts();
  const act = { alertId: alert?.id ?? 0, by: "alice", note: null, atMs: now };
  expect(await resolveAlert(database, act)).toMatchObject({ result: "done", channels: ["chat"] });
  await reporter.look();
  await reporter.look();
  expect((await reporter.told()).map((told) => told.split(" ").slice(0, 2).join(" "))).toEqual([
    "1 first",
    "2 resolved",
    "3 worse",
  ]);
  expect(await database.db.select().from(alerts).where(eq(alerts.state, "firing"))).toHaveLength(1);
});

/** The heartbeat of a service with this setting. */
function createHeart(url: string, allowPrivate = "true") {
  const config = parseConfig({
    LONGWATCH_HEARTBEAT_URL: url,
    LONGWATCH_ALLOW_PRIVATE_WEBHOOKS: allowPrivate,
  });
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line) => void lines.push(line) });
  const heartbeat = openHeartbeat(config, clock);
  if (heartbeat === null) throw new Error("no heartbeat was opened");
  const job = createSendHeartbeatJob({ ...deps(), log, heartbeat });
  return { lines, beat: () => job.run({} as never, never) };
}

test("the heartbeat goes out while every zone is polled and the key is taken, and only then", async () => {
  const watcher = await startReplyQueue();
  onTestFinished(() => watcher.close());
  const { beat, lines } = createHeart(`${watcher.url}/ping/canary`);
  await beat();
  expect(watcher.requests).toEqual([]);
  await poll(NOW);
  watcher.reply(200, "ok");
  await beat();
  expect(watcher.requests).toMatchObject([{ method: "POST", path: "/ping/canary", body: "{}" }]);
  const observer = recordPlatformHealth({ database, clock, log: silent });
  await observer.refused(ZONE, "EDGE_UNAUTHORIZED");
  now += 2 * MINUTE_MS;
  await beat();
  now += MINUTE_MS;
  await observer.answered(ZONE);
  watcher.reply(200);
  await beat();
  expect(watcher.requests).toHaveLength(2);
  now += 20 * MINUTE_MS;
  await beat();
  expect(watcher.requests).toHaveLength(2);
  expect(lines.join("")).toContain("heartbeat withheld");
  expect(lines.join("")).not.toContain("canary");
});

test("a failing external monitor is reported without the secret, and an address that is not public is refused", async () => {
  const watcher = await startReplyQueue();
  onTestFinished(() => watcher.close());
  await poll(NOW);
  const { beat } = createHeart(`${watcher.url}/ping/canary`);
  watcher.reply(404, "canary");
  const failure = await beat().catch((thrown: unknown) => thrown);
  expect(failure).toMatchObject({ code: "ENDPOINT_REJECTED" });
  expect(String(failure)).not.toContain("canary");
  const [host] = [new URL(watcher.url).host];
  expect(() => createHeart(`https://${host}/ping/canary`, "false")).toThrow(
    /not a public address \(loopback\)/,
  );
  expect(() => createHeart("http://watch.example.test/canary", "false")).toThrow(/^(?!.*canary)/);
  expect(watcher.requests).toHaveLength(1);
});

test("without a watcher nothing is opened", () => {
  expect(openHeartbeat(parseConfig({}), clock)).toBeNull();
});

test("a damaged file of the archive is one alert that names its day, over when the file is whole", async () => {
  const file = { path: "events/zone=101/day=2026-11-01/0123.parquet", sha256: "0".repeat(64) };
  await database.pool.query(
    `insert into archive_files (bytes, zone_id, day, rows, format, hours, sum, kind, sha256, path)
     values (1, $1, '2026-11-01', 0, 1, array_fill(0, array[24]), 0, 'events', $2, $3)`,
    [ZONE, file.sha256, file.path],
  );
  const reporter = createReporter();
  await poll(NOW);
  await reporter.look();
  await noteDamage(database.db, file, "is missing");
  for (let look = 0; look < 2; look++) await reporter.look();
  await noteDamage(database.db, file, null);
  await reporter.look();
  const told = await reporter.told();
  expect(told.map((text) => text.split(":")[0])).toEqual([
    "1 first The archive is damaged",
    "2 resolved Every file of the archive that is in use is whole again",
  ]);
  expect(told[0]).toContain("2026-11-01 is missing");
});
