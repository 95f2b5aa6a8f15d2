import { randomUUID } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { parseConfig } from "#config/config.ts";
import { readServerPlace, type ServerPlace } from "#db/health/server-facts.ts";
import { beatReplica } from "#db/postgres/leases.ts";
import { doctorCommand } from "#faces/cli/doctor/doctor.ts";
import { findLocalFolder } from "#faces/cli/doctor/gather-facts.ts";
import type { DoctorFacts, Finding, PlatformFacts, PostgresFacts } from "#health/doctor/facts.ts";
import { judge } from "#health/doctor/judge.ts";
import type { Examined } from "#jobs/health/conditions/condition.ts";
import { CONDITIONS } from "#jobs/health/conditions/service.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { findFreePort } from "../../support/free-port.ts";
import { startIssuer } from "../../support/issuer.ts";
import { findRedisServer, startTestRedis } from "../../support/redis.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { runStoreCommand, type Terminal } from "./run-store-command.ts";

const KEY = "doctor-key-0f5a1c1e";
const server = createServer((request, response) => {
  const send = (status: number, body: unknown) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  const { url = "" } = request;
  if (url.startsWith("/apikey"))
    send(200, {
      Items: [{ Id: 1, Key: KEY, Roles: ["UserApi"] }],
      CurrentPage: 1,
      TotalItems: 1,
      HasMoreItems: false,
    });
  else if (url.includes("/101/search"))
    send(200, { rows: [], groups: null, total: 0, totalPages: 0, page: 0, errorResponse: null });
  else send(403, { title: "Forbidden", status: 403 });
});
let database: MigratedDatabase;
let platform: string;

beforeAll(async () => {
  database = await createMigratedDatabase();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  platform = `http://127.0.0.1:${address.port}`;
});

afterAll(async () => {
  await new Promise((done) => server.close(done));
  await database.drop();
});

async function examine(
  env: Record<string, string>,
  args: readonly string[] = ["--json"],
  more: Partial<Terminal> = {},
) {
  const create: Parameters<typeof runStoreCommand>[0] = (_, io) =>
    doctorCommand(() => ({ config: parseConfig(env), configFile: env["LONGWATCH_CONFIG"] ?? null, env }), io);
  return runStoreCommand(create, {}, args, { now: Date.now(), ...more });
}

async function findings(env: Record<string, string>) {
  const ran = await examine(env);
  return { code: ran.code, items: (JSON.parse(ran.out) as { items: Finding[] }).items };
}

const find = (items: readonly Finding[], text: string) => items.find((one) => one.text.includes(text));

test("it asks the platform for the key's roles and once for each zone, and names what a zone refuses", async () => {
  const folder = makeTemporaryFolder("doctor");
  const secret = path.join(folder, "key");
  writeFileSync(secret, KEY);
  chmodSync(secret, 0o644);
  const replica = { host: "old-host", pid: 7, roles: ["ingest", "derive", "alerts"], zoneIds: [101] };
  await beatReplica(database.db, { ...replica, id: "a", version: "0.0.9" });
  await beatReplica(database.db, { ...replica, id: "b", version: "0.2.0" });
  const env = {
    DATABASE_URL: database.url,
    EDGE_API_URL: platform,
    EDGE_API_KEY_FILE: secret,
    EDGE_SHIELD_ZONES: "101,102",
    LONGWATCH_DATA_DIR: folder,
    LONGWATCH_SLACK_WEBHOOK_URL: "https://hooks.slack.example/services/x",
  };
  const { code, items } = await findings(env);
  expect(code).toBe(1);
  expect(find(items, "accepts the key")).toMatchObject({
    level: "ok",
    text: expect.stringContaining("UserApi"),
  });
  expect(find(items, "zone 101")).toMatchObject({ level: "ok", next: null });
  expect(find(items, "zone 102")).toMatchObject({
    level: "problem",
    text: expect.stringContaining("EDGE_FORBIDDEN"),
  });
  expect(find(items, "clock of the platform")?.level).toBe("ok");
  expect(find(items, "clock of Postgres")?.level).toBe("ok");
  expect(find(items, "superuser")).toMatchObject({ check: "rights", level: "warning" });
  expect(find(items, "Channel slack")).toMatchObject({ level: "ok" });
  expect(find(items, secret)).toMatchObject({ level: "warning", next: "Run chmod go= on it." });
  expect(find(items, "different versions: 0.0.9, 0.2.0")).toMatchObject({ level: "warning" });
  const text = await examine(env, [], { isTTY: false });
  expect(text.out).not.toContain(KEY);
  expect(text.out).not.toContain("\u001b");
  expect(Math.max(...text.out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(text.out).toMatch(/\nPROBLEM {2}zone +A search of zone 102 failed/);
});

test("a file of a secret that the configuration file names and others may read is a finding", async () => {
  const folder = makeTemporaryFolder("doctor");
  const file = path.join(folder, "longwatch.yaml");
  writeFileSync(path.join(folder, "shop-key"), "canary-key-of-the-shop");
  chmodSync(path.join(folder, "shop-key"), 0o640);
  writeFileSync(file, `accounts: {shop: {key_file: shop-key, address: "${platform}", zones: [201]}}`);
  const { items } = await findings({
    DATABASE_URL: database.url,
    LONGWATCH_CONFIG: file,
    LONGWATCH_DATA_DIR: folder,
  });
  expect(find(items, "accounts.shop.key_file, mode 640")).toMatchObject({
    level: "warning",
    next: "Run chmod go= on it.",
  });
});

test("the issuer of sign_in is asked for its discovery document", async () => {
  const issuer = await startIssuer({ redirectUri: "https://longwatch.example/sign-in" });
  onTestFinished(() => issuer.close());
  const folder = makeTemporaryFolder("doctor");
  const file = path.join(folder, "longwatch.yaml");
  const find = async (url: string) => {
    writeFileSync(
      file,
      `sign_in: {issuer: "${url}", client_id: x, claim: groups, roles: {a: {role: reader}}, allow_private_networks: true}`,
    );
    const { items } = await findings({
      DATABASE_URL: database.url,
      LONGWATCH_CONFIG: file,
      LONGWATCH_PUBLIC_URL: "https://longwatch.example",
      LONGWATCH_DATA_DIR: folder,
    });
    return items.find(({ check }) => check === "sign-in");
  };
  expect(await find(issuer.url)).toMatchObject({ level: "ok" });
  const other = issuer.url.replace("127.0.0.1", "localhost");
  expect(await find(other)).toMatchObject({
    level: "problem",
    text: expect.stringContaining("names itself otherwise than sign_in.issuer"),
  });
});

test("a database, a Redis, a bucket and a platform that are down are findings, and the other parts are still examined", async () => {
  const port = await findFreePort();
  const { code, items } = await findings({
    DATABASE_URL: `postgres://127.0.0.1:${port}/none`,
    REDIS_URL: `redis://127.0.0.1:${port}`,
    EDGE_API_URL: `http://127.0.0.1:${port}`,
    EDGE_API_KEY: KEY,
    EDGE_SHIELD_ZONES: "101",
    LONGWATCH_ARCHIVE_URL: "s3://logs",
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    AWS_ACCESS_KEY_ID: "id",
    AWS_SECRET_ACCESS_KEY: "secret",
    LONGWATCH_DATA_DIR: makeTemporaryFolder("doctor"),
  });
  expect(code).toBe(1);
  expect(find(items, `logs cannot be reached at http[:]//127.0.0.1:${port}`)?.level).toBe("problem");
  expect(find(items, `Postgres at 127.0.0.1:${port} cannot be reached`)).toMatchObject({ level: "problem" });
  expect(find(items, "Redis cannot be read")).toMatchObject({
    level: "problem",
    text: expect.stringContaining("ECONNREFUSED"),
  });
  expect(find(items, "zone 101")).toMatchObject({ level: "problem" });
  expect(find(items, "terminal only")).toMatchObject({ level: "warning" });
  for (const { level, next } of items)
    expect(next === null).toBe(level === "ok" || (level === "note" && next === null));
}, 60_000);

test("the disk of a Postgres on this machine is judged if the role may know its folder, and else its size is a note", async () => {
  const env = { DATABASE_URL: database.url, LONGWATCH_DATA_DIR: makeTemporaryFolder("doctor") };
  const { rows } = await database.pool.query<{ folder: string }>(
    "select current_setting('data_directory') as folder",
  );
  const [{ folder }] = rows as [{ folder: string }];
  const seen = (await findings(env)).items.filter(({ check }) => check === "disk");
  expect(seen).toHaveLength(1);
  expect(seen[0]?.text).toContain(`are free on the disk of the database (${folder})`);

  const role = `doctor_${randomUUID().slice(0, 8)}`;
  await database.pool.query(`create role ${role} login password 'doctor'`);
  await database.pool.query(`grant select on all tables in schema public to ${role}`);
  const url = new URL(database.url);
  [url.username, url.password] = [role, "doctor"];
  try {
    const { items } = await findings({ ...env, DATABASE_URL: url.href });
    const [size, ...others] = items.filter(({ check }) => check === "disk");
    expect(others).toEqual([]);
    expect(size).toMatchObject({ level: "note", next: expect.stringContaining("df") });
    expect(size?.text).toMatch(/^The database has \d+ MB.*The free space .* cannot be read from here\.$/);
    await database.pool.query(`grant pg_read_all_settings to ${role}`);
    const granted = (await findings({ ...env, DATABASE_URL: url.href })).items;
    expect(find(granted, `disk of the database (${folder})`)).toMatchObject({ check: "disk" });
  } finally {
    await database.pool.query(`drop owned by ${role}`);
    await database.pool.query(`drop role ${role}`);
  }
});

test.each<[string, Partial<ServerPlace>]>([
  ["an address of another machine", { address: "192.0.2.7" }],
  ["a process that this machine does not have, as behind a tunnel", { backendPid: 2 ** 30 }],
  ["a folder that this machine does not have", { dataFolder: "/no/such/folder" }],
  ["a folder that the role may not know", { dataFolder: null }],
])("a server with %s is not taken for one of this machine", async (_, change) => {
  const place = await readServerPlace(database.db);
  expect(findLocalFolder(place)).toBe(place.dataFolder);
  expect(findLocalFolder({ ...place, ...change })).toBeNull();
});

const redisServer = findRedisServer();
test.skipIf(redisServer === null)(
  `the policy and the persistence of Redis are read from the server${redisServer === null ? " (skipped: no redis-server on PATH)" : ""}`,
  async () => {
    const redis = await startTestRedis(redisServer ?? "");
    const client = new Redis(redis.url);
    try {
      const env = {
        DATABASE_URL: database.url,
        REDIS_URL: redis.url,
        LONGWATCH_DATA_DIR: makeTemporaryFolder("doctor"),
      };
      expect(find((await findings(env)).items, "keeps every job")).toMatchObject({
        check: "redis",
        level: "ok",
      });
      await client.config("SET", "maxmemory-policy", "allkeys-lru");
      await client.config("SET", "appendonly", "no");
      const { items } = await findings(env);
      expect(find(items, "maxmemory-policy is allkeys-lru")).toMatchObject({ level: "problem" });
      expect(find(items, "no append-only file")).toMatchObject({ level: "note" });
    } finally {
      client.disconnect();
      await redis.stop();
    }
  },
);

const GOOD: PostgresFacts = {
  versionNumber: 180_001,
  version: "18.1",
  encoding: "UTF8",
  fsync: "on",
  fullPageWrites: "on",
  synchronousCommit: "on",
  autovacuum: "on",
  statementTimeoutMs: 0,
  differing: [],
  isShared: false,
  isReadOnly: false,
  maxConnections: 100,
  usedConnections: 12,
  hasTables: true,
  offsetMs: 3,
  excess: [],
  dayBytes: 1_000_000_000,
  databaseBytes: 12_300_000_000,
  stored: { databaseBytes: 12_300_000_000, recordBytes: 4_000_000_000, archiveBytes: 20_000_000 },
};
const named = (name: string) => CONDITIONS.find((one) => one.name === name)!;
const [unpolled, horizon] = [named("unpolled"), named("horizon")];
const FOUND: Examined = {
  condition: unpolled,
  subject: { zoneId: 101 },
  fingerprint: "quiet",
  row: null,
  alert: null,
  isOpen: false,
  nowMs: 0,
  pollEveryMs: 0,
  severity: "error",
  isDue: true,
  found: {
    since: 0,
    headline: "Zone 101: no poll has succeeded yet",
    next: { text: "Look.", command: null },
  },
};
const PLATFORM: PlatformFacts = {
  account: null,
  host: "edge.example",
  roles: { value: ["UserApi"] },
  zones: [{ zoneId: 1, failed: null }],
  offsetMs: { value: 400 },
};
const FACTS: DoctorFacts = {
  version: "0.2.0",
  platform: [PLATFORM],
  conditions: [],
  tooManyKnown: null,
  postgres: { value: GOOD },
  redis: null,
  bucket: { value: "s3://logs" },
  disks: [
    {
      holds: "the database",
      folder: "/data",
      freeBytes: 50_000_000_000,
      totalBytes: 100_000_000_000,
      holdsDatabase: true,
    },
  ],
  issuer: null,
  kept: { days: 400, setting: "LONGWATCH_RETENTION_DAYS" },
  channels: [{ name: "ops", kind: "slack", failed: null }],
  consoleUrl: "https://longwatch.example.com",
  destinations: [{ destination: "siem", isUsed: true }],
  configFile: "/etc/longwatch.yaml",
  files: [{ file: "/run/key", holds: "EDGE_API_KEY_FILE", mode: 0o600, isSecret: true }],
  loose: { folder: "/data", entries: [] },
  adminKeyLeftMs: null,
  service: {
    replicas: [
      {
        host: "h",
        pid: 1,
        version: "0.2.0",
        roles: ["ingest"],
        state: "alive",
        startedAt: 0,
        lastAliveAt: 0,
        silentMs: 0,
      },
    ],
    roles: [],
    missingRoles: [],
  },
};
const withPostgres = (more: Partial<PostgresFacts>): Partial<DoctorFacts> => ({
  postgres: { value: { ...GOOD, ...more } },
});
const withDisk = (freeBytes: number): Partial<DoctorFacts> => ({
  disks: FACTS.disks.map((disk) => ({ ...disk, freeBytes })),
});
const withChannel = (more: Partial<DoctorFacts["channels"][number]>): Partial<DoctorFacts> => ({
  channels: FACTS.channels.map((channel) => ({ ...channel, ...more })),
});
const withCondition = (more: Partial<Examined>): Partial<DoctorFacts> => ({
  conditions: [
    { ...FOUND, found: null },
    { ...FOUND, ...more },
  ],
});

test("facts without a fault are all ok, and nothing is to be done", () => {
  for (const { level, next } of judge(FACTS)) expect({ level, next }).toEqual({ level: "ok", next: null });
});

test.each<[string, Partial<DoctorFacts>, Finding["level"], string]>([
  [
    "an old Postgres",
    withPostgres({ versionNumber: 140_009, version: "14.9" }),
    "problem",
    "needs 15 or newer",
  ],
  ["a grave condition", withCondition({}), "problem", "Zone 101: no poll has succeeded yet."],
  [
    "a grave condition in its grace time",
    withCondition({ isDue: false, condition: horizon }),
    "warning",
    "yet.",
  ],
  ["one that people see early", withCondition({ isDue: false }), "problem", "yet."],
  ["one that is over", withCondition({ found: { ...FOUND.found!, isOver: true } }), "warning", "yet."],
  ["a condition that is not grave", withCondition({ severity: "warning" }), "warning", "yet."],
  ["a notice", withCondition({ severity: "info" }), "note", "yet."],
  [
    "a condition whose sentence says what to do",
    withCondition({ found: { since: 0, headline: "Free space" } }),
    "problem",
    "Free space.",
  ],
  ["messages without a link", { consoleUrl: null }, "note", "have no link to the console"],
  [
    "an unused destination",
    { destinations: [{ destination: "siem", isUsed: false }] },
    "note",
    "Nothing was forwarded to",
  ],
  ["fsync off", withPostgres({ fsync: "off" }), "problem", "fsync is off"],
  ["full_page_writes off", withPostgres({ fullPageWrites: "off" }), "problem", "full_page_writes is off"],
  ["autovacuum off", withPostgres({ autovacuum: "off" }), "problem", "autovacuum is off"],
  [
    "synchronous_commit off",
    withPostgres({ synchronousCommit: "off" }),
    "warning",
    "synchronous_commit is off",
  ],
  ["another encoding", withPostgres({ encoding: "SQL_ASCII" }), "problem", "encoding is SQL_ASCII"],
  ["a standby", withPostgres({ isReadOnly: true }), "problem", "accepts no writes"],
  ["no tables", withPostgres({ hasTables: false }), "problem", "no tables of Longwatch"],
  ["few connections", withPostgres({ usedConnections: 95 }), "warning", "95 of 100 connections"],
  [
    "a short statement_timeout",
    withPostgres({ statementTimeoutMs: 5_000 }),
    "warning",
    "statement_timeout is 5000 ms",
  ],
  [
    "a session that does not keep its settings",
    withPostgres({ differing: ["DateStyle is German, DMY, not ISO, MDY"] }),
    "problem",
    "DateStyle is German, DMY, not ISO, MDY",
  ],
  [
    "a pooler that shares sessions",
    withPostgres({ isShared: true }),
    "problem",
    "each transaction another session",
  ],
  ["a clock ahead", withPostgres({ offsetMs: 7_000 }), "warning", "Postgres is 7 s ahead of"],
  [
    "a clock behind",
    { platform: [{ ...PLATFORM, offsetMs: { value: -90_000 } }] },
    "warning",
    "platform is 90 s behind",
  ],
  ["a bucket without answer", { bucket: { failed: "403" } }, "problem", "bucket cannot be used: 403"],
  ["a full disk in two days", withDisk(2_000_000_000), "problem", "2 days at 1.0 GB a day"],
  [
    "the unknown disk of another machine",
    { disks: [] },
    "note",
    "The database has 12.3 GB and grows by 1.0 GB a day: 30 days take 30.0 GB, the 400 days of LONGWATCH_RETENTION_DAYS up to 400.0 GB. The free space of the server's disk cannot be read from here.",
  ],
  [
    "the unknown disk of a database beside an archive",
    { disks: [], kept: { days: 7, setting: "LONGWATCH_HOT_DAYS" } },
    "note",
    "grows by 1.0 GB a day: the 7 days of LONGWATCH_HOT_DAYS up to 7.0 GB. The free space",
  ],
  [
    "the unknown disk of a new database",
    { disks: [], ...withPostgres({ dayBytes: 0 }) },
    "note",
    "The database has 12.3 GB; its growth is not known yet.",
  ],
  ["a full disk in ten days", withDisk(10_000_000_000), "warning", "10 days at"],
  [
    "a key that is not listed",
    { platform: [{ ...PLATFORM, roles: { value: null } }] },
    "warning",
    "does not have the key",
  ],
  [
    "a zone of an account that cannot be searched",
    { platform: [PLATFORM, { ...PLATFORM, account: "shop", zones: [{ zoneId: 2, failed: "401" }] }] },
    "problem",
    "A search of zone 2 of account shop failed: 401.",
  ],
  [
    "a channel with a wrong setting",
    withChannel({ failed: "url: must be https" }),
    "problem",
    "cannot be opened: url: must be https",
  ],
  ["no admin key", { adminKeyLeftMs: 0 }, "warning", "No admin key is valid"],
  ["an admin key that ends soon", { adminKeyLeftMs: 3 * 86_400_000 }, "warning", "expires in 3 days"],
  [
    "an archive that others may read",
    { loose: { folder: "/data", entries: [{ path: "/data/archive/x.parquet", mode: 0o644 }] } },
    "warning",
    "such as /data/archive/x.parquet (mode 644)",
  ],
  ["a readable secret", { files: [{ ...FACTS.files[0]!, mode: 0o640 }] }, "warning", "mode 640"],
  [
    "a writable configuration",
    { files: [{ ...FACTS.files[0]!, isSecret: false, mode: 0o664 }] },
    "warning",
    "Others may change",
  ],
  [
    "two processes that were killed",
    {
      service: {
        ...FACTS.service!,
        replicas: [0, 1, 2].map((pid) => ({
          ...FACTS.service!.replicas[0]!,
          pid,
          state: pid === 0 ? "alive" : "silent",
        })),
      },
    },
    "note",
    "2 processes ended without a stop: h 1, h 2.",
  ],
  [
    "more known sources than count",
    { tooManyKnown: { rule: "must be at most 500 known sources in zone 7", count: 612 } },
    "warning",
    "There are 612 known sources: must be at most 500 known sources in zone 7.",
  ],
  ["another version", { version: "0.3.0" }, "note", "runs version 0.2.0, this command is 0.3.0"],
])("%s is a finding with what to do", (_, change, level, text) => {
  const found = judge({ ...FACTS, ...change }).filter((finding) => finding.level !== "ok");
  expect(found).toHaveLength(1);
  expect(found[0]).toMatchObject({
    level,
    text: expect.stringContaining(text) as unknown,
    next: expect.any(String) as unknown,
  });
});
