import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { systemClock } from "#lib/clock.ts";
import { findCluster, pickPostgresUser } from "#store/embedded/place-cluster.ts";
import { startEmbeddedPostgres } from "#store/embedded/postgres.ts";
import {
  openOutageFile,
  type PostgresOutage,
  readOutageFile,
  superviseEmbeddedPostgres,
} from "#store/embedded/supervise-postgres.ts";
import { mountSmallDisk, type SmallDisk } from "../../support/small-disk.ts";

const WAIT = { timeout: 60_000, interval: 100 };

/** One cluster for all: making it takes longest. */
const dataDir = mkdtempSync(path.join(tmpdir(), "longwatch-supervised-"));
chmodSync(dataDir, 0o755);
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return (await client.query(text)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function postmaster(): number {
  const [pid] = readFileSync(path.join(findCluster(dataDir), "postmaster.pid"), "utf8").split("\n");
  return Number(pid);
}

async function supervise(folder = dataDir) {
  const downs: PostgresOutage[] = [];
  const ups: PostgresOutage[] = [];
  const postgres = await superviseEmbeddedPostgres({
    dataDir: folder,
    settings: ["fsync=off"],
    clock: systemClock,
    pauseMs: 50,
    onDown: (outage) => void downs.push(outage),
    onUp: (outage) => void ups.push(outage),
  });
  onTestFinished(() => postgres.stop());
  return { ...postgres, downs, ups };
}

test("a server whose postmaster was killed comes back at the same address with every committed row", async () => {
  const postgres = await supervise();
  await query(postgres.url, "create table if not exists kept as select 42 as answer");
  const before = postmaster();

  process.kill(before, "SIGKILL");

  await expect.poll(() => postgres.ups, WAIT).toHaveLength(1);
  expect(await query(postgres.url, "select answer from kept")).toEqual([{ answer: 42 }]);
  expect(postmaster()).not.toBe(before);
  expect(postgres.downs[0]).toMatchObject({ reason: "signal 9", failedRestarts: 0, isDiskFull: false });
});

test("a restart that fails names the server's last error lines, and the next one is tried", async () => {
  const postgres = await supervise();
  const config = path.join(findCluster(dataDir), "postgresql.auto.conf");
  const whole = readFileSync(config);
  execFileSync("sh", ["-c", 'echo "shared_buffers = nonsense" >> "$1"', "sh", config]);

  process.kill(postmaster(), "SIGKILL");

  await expect.poll(() => postgres.downs.length, WAIT).toBeGreaterThan(2);
  expect(postgres.downs.at(-1)?.failedRestarts).toBeGreaterThan(0);
  expect(postgres.downs.at(-1)?.lines.join("\n")).toContain("FATAL");
  execFileSync("sh", ["-c", 'printf "%s" "$2" > "$1"', "sh", config, whole.toString()]);
  await expect.poll(() => postgres.ups, WAIT).toHaveLength(1);
  expect(await query(postgres.url, "select 1 as one")).toEqual([{ one: 1 }]);
});

test("a stop ends the supervision: the server stays down", async () => {
  const postgres = await supervise();
  await postgres.stop();
  await expect(query(postgres.url, "select 1")).rejects.toThrow(/ECONNREFUSED/);
  expect(postgres.downs).toEqual([]);

  const next = await startEmbeddedPostgres({ dataDir });
  await next.stop();
});

test("a stop during an outage leaves no server behind", async () => {
  const postgres = await supervise();
  process.kill(postmaster(), "SIGKILL");
  await expect.poll(() => postgres.downs.length, WAIT).toBeGreaterThan(0);

  await postgres.stop();
  await delay(200);

  await expect(query(postgres.url, "select 1")).rejects.toThrow(/ECONNREFUSED/);
});

test("a start that is given up as soon as it began leaves no server behind", async () => {
  for (let start = 0; start < 2; start++) {
    const given = startEmbeddedPostgres({ dataDir, signal: AbortSignal.abort(new Error("given up")) });
    await expect(given).rejects.toThrow("embedded Postgres did not start");
  }
  const next = await startEmbeddedPostgres({ dataDir });
  await next.stop();
});

test("a killed server comes back though another process of its user has its id by now", async () => {
  const postgres = await supervise();
  // By its path: the user of the server may not read every folder of this PATH.
  const other = spawn("/bin/sh", ["-c", "read -r _"], {
    ...pickPostgresUser(),
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  onTestFinished(() => void other.kill("SIGKILL"));
  const pidFile = path.join(findCluster(dataDir), "postmaster.pid");
  const [, ...rest] = readFileSync(pidFile, "utf8").split("\n");
  const pid = postmaster();
  writeFileSync(pidFile, [other.pid, ...rest].join("\n"));
  process.kill(pid, "SIGKILL");

  await expect.poll(() => postgres.ups, WAIT).toHaveLength(1);
});

test("a data folder that is gone is not made anew by a restart: the service would run on an empty database", async () => {
  const postgres = await supervise();
  const pid = postmaster();
  const cluster = findCluster(dataDir);
  renameSync(cluster, `${cluster}.moved`);
  process.kill(pid, "SIGKILL");

  await expect.poll(() => postgres.downs.at(-1)?.reason, WAIT).toMatch(/the cluster in .* is gone/);
  renameSync(`${cluster}.moved`, cluster);
  await expect.poll(() => postgres.ups, WAIT).toHaveLength(1);
});

let disk: SmallDisk | null = null;
beforeAll(() => {
  disk = mountSmallDisk(300);
});
afterAll(() => disk?.remove());

test("a server that a full disk has ended comes back when the disk has room, with every committed row", async (context) => {
  if (disk === null) {
    context.skip("this user may not mount a disk");
    return;
  }
  const small = disk;
  const folder = path.join(small.folder, "longwatch");
  const postgres = await supervise(folder);
  const record = openOutageFile(folder);
  await query(postgres.url, "create table if not exists kept as select 42 as answer");
  // Writes to the server's log only; without room for its next file the server ends. What its end gives back is taken again.
  const write = "select pg_logical_emit_message(false, 'test', repeat('x', 10000000))";
  await expect
    .poll(async () => {
      small.fill();
      await query(postgres.url, write).catch(() => undefined);
      return postgres.downs.length;
    }, WAIT)
    .toBeGreaterThan(1);

  const last = postgres.downs.at(-1);
  expect(last).toMatchObject({ isDiskFull: true });
  expect(last?.lines.join("\n")).toContain("No space left on device");
  // The outage is recorded on the very disk that is full.
  if (last !== undefined) record(last, null);
  expect(readOutageFile(folder)).toMatchObject({ untilMs: null, lines: last?.lines });

  small.enlarge(600);
  await expect.poll(() => postgres.ups, WAIT).toHaveLength(1);
  expect(await query(postgres.url, "select answer from kept")).toEqual([{ answer: 42 }]);
});
