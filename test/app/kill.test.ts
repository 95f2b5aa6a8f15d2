import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { readRuntimeFile } from "#app/runtime-file.ts";
import { createDatabase } from "#db/client.ts";
import { compareBuckets } from "#db/detection/compare-buckets.ts";
import { EMULATOR_DEFAULTS, saveState } from "#emulator/emulator.ts";
import { readShown } from "../faults/invariants.ts";
import { quickEnvironment } from "../support/quick-environment.ts";
import { openQuickFolder } from "../support/small-disk.ts";

const root = path.join(import.meta.dirname, "..", "..");
const WAIT = { timeout: 240_000, interval: 200 };
const ZONES = [101, 102];

/** Gives the emulator a history of about 8,000 events, a thirtieth of its own: enough to be killed in the middle of it. */
function writeHistory(dataDir: string): void {
  const now = Date.now();
  const firstEventMs = now - 37 * 3_600_000;
  const rates = [{ sinceMs: firstEventMs, eventsPerSecond: 0.03 }];
  const zones = ZONES.map((id) => ({ id, firstEventMs, createdAtMs: now, rates }));
  saveState(path.join(dataDir, "emulator.json"), {
    version: 1,
    seed: EMULATOR_DEFAULTS.seed,
    zones,
    attacks: [],
  });
}

/** `npm start` without any setting, in a folder of its own. `warned` returns what it wrote to its log. */
function start(dataDir: string) {
  const service = spawn(process.execPath, [path.join(root, "src", "main.ts"), "start"], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    env: {
      ...quickEnvironment(),
      LONGWATCH_DATA_DIR: dataDir,
      LONGWATCH_PORT: "0",
      LONGWATCH_LOG_LEVEL: "warn",
    },
  });
  const exited = once(service, "exit").then(([code, signal]) => (code ?? signal) as number | string);
  onTestFinished(() => killGroup(service));
  let [printed, warned] = ["", ""];
  service.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  service.stderr.setEncoding("utf8").on("data", (text: string) => {
    warned += text;
  });
  // On a busy machine Postgres and the emulator may be slow. The service says so, and goes on.
  const isSlow = /^.*("reason":"no answer within|"part":"emulator",.*"message":"not stopped in) .*\n/gm;
  return { service, exited, printed: () => printed, warned: () => warned.replaceAll(isSlow, "") };
}

type Service = ReturnType<typeof start>;

function killGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid ?? 0), "SIGKILL");
  } catch {
    // Gone already.
  }
}

async function withClient<T>(dataDir: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: readRuntimeFile(dataDir)?.databaseUrl });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function countStored(dataDir: string): Promise<number> {
  const query = "select count(*)::integer as stored from waf_events";
  const { rows } = await withClient(dataDir, (client) => client.query<{ stored: number }>(query));
  return rows[0]?.stored ?? 0;
}

async function storedIds(dataDir: string): Promise<string[]> {
  const query = "select zone_id || ' ' || log_id as id from waf_events";
  const { rows } = await withClient(dataDir, (client) => client.query<{ id: string }>(query));
  return rows.map(({ id }) => id).sort();
}

/** Returns the events that the emulator has shown of the time before `until`. */
async function shownIds(dataDir: string, until = Number.POSITIVE_INFINITY): Promise<string[]> {
  const url = readRuntimeFile(dataDir)?.emulator?.url;
  const zones = await Promise.all(
    ZONES.map(async (zone) => {
      return (await readShown(url ?? "", zone))
        .filter(({ timestamp }) => timestamp < until)
        .map(({ logId }) => `${zone} ${logId}`);
    }),
  );
  return zones.flat().sort();
}

/** Waits until the service has stored more events than `before`. */
async function waitForEvents(dataDir: string, { service }: Service, before: number): Promise<void> {
  await vi.waitFor(async () => {
    if (readRuntimeFile(dataDir)?.pid !== service.pid) throw new Error("not up yet");
    expect(await countStored(dataDir)).toBeGreaterThan(before);
  }, WAIT);
}

/** Expects that the signal ends the service with 0, that it warns of nothing, and that no process of it is left. */
async function expectQuietStop(
  dataDir: string,
  { service, exited, warned }: Service,
  signal: NodeJS.Signals,
): Promise<void> {
  const running = readRuntimeFile(dataDir);
  const before = warned();
  service.kill(signal);
  expect(await exited).toBe(0);
  expect(warned()).toBe(before);
  expect(readRuntimeFile(dataDir)).toBeNull();
  for (const url of [running?.databaseUrl, running?.emulator?.url]) {
    const port = Number(new URL(url ?? "").port);
    const client = new pg.Client({ host: "127.0.0.1", port, user: "nobody", database: "none" });
    await expect(client.connect()).rejects.toMatchObject({ code: "ECONNREFUSED" });
  }
}

test(
  "stopped and killed in the middle of the backfill, started again: every event once, buckets that add up, and each stop leaves nothing running",
  async () => {
    const { folder: dataDir } = openQuickFolder();
    writeHistory(dataDir);
    const first = start(dataDir);
    await waitForEvents(dataDir, first, 0);
    const stored = await countStored(dataDir);
    expect(first.warned()).toBe("");
    await expectQuietStop(dataDir, first, "SIGTERM");
    expect(first.printed()).not.toContain("History complete");

    const second = start(dataDir);
    await waitForEvents(dataDir, second, stored + 1_000);
    killGroup(second.service);
    await second.exited;
    expect(second.printed()).not.toContain("History complete");

    const third = start(dataDir);
    await vi.waitFor(() => expect(third.printed()).toContain("History complete"), WAIT);
    // Events that come later than the search looks back are found by a pass over the list, minutes from now.
    const shown = await shownIds(dataDir, Date.now() - 15 * 60_000);
    expect(shown.length).toBeGreaterThan(6_500);
    await expectStored(dataDir, shown);
    await expectTrueBuckets(dataDir);

    const fourth = start(dataDir);
    expect(await fourth.exited).toBe(2);
    await expectQuietStop(dataDir, third, "SIGINT");
  },
  4 * WAIT.timeout,
);

/** Expects that these events are stored, each event once, and nothing that the emulator has not shown. */
async function expectStored(dataDir: string, shown: readonly string[]): Promise<void> {
  let stored: string[] = [];
  await vi.waitFor(async () => {
    stored = await storedIds(dataDir);
    const known = new Set(stored);
    expect(shown.filter((id) => !known.has(id))).toEqual([]);
  }, WAIT);
  const shownSince = new Set(await shownIds(dataDir));
  expect(stored.filter((id) => !shownSince.has(id))).toEqual([]);
  expect(new Set(stored).size).toBe(stored.length);
}

async function expectTrueBuckets(dataDir: string): Promise<void> {
  const url = readRuntimeFile(dataDir)?.databaseUrl ?? "";
  const database = createDatabase({
    url,
    max: 1,
    applicationName: "longwatch test",
    onError: () => undefined,
  });
  try {
    const now = Date.now();
    const range = { from: new Date(now - 80 * 3_600_000), to: new Date(now) };
    await vi.waitFor(async () => {
      const differing = await compareBuckets(database.db, range);
      expect(differing.filter(({ isPending }) => !isPending)).toEqual([]);
    }, WAIT);
  } finally {
    await database.close();
  }
}
