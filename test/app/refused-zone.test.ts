import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pino from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { createApp, type RunningApp } from "#app/app.ts";
import { parseServiceConfig } from "#config/config.ts";
import { readPauses } from "#db/ingest/request-budgets.ts";
import { createEmulator } from "#emulator/emulator.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { readShown } from "../faults/invariants.ts";
import { ROUTES } from "../support/liar/lie.ts";
import { type LyingPlatform, startLyingPlatform } from "../support/liar/lying-platform.ts";
import { writeSchedule } from "../support/write-schedule.ts";

const REFUSED = 101;
const OTHER = 102;
const WAIT = { timeout: 120_000, interval: 250 };

async function startReplica(databaseUrl: string, platform: LyingPlatform, key: string): Promise<RunningApp> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "longwatch-refused-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const config = parseServiceConfig({
    DATABASE_URL: databaseUrl,
    EDGE_API_URL: platform.url,
    EDGE_API_KEY: key,
    EDGE_SHIELD_ZONES: `${REFUSED},${OTHER}`,
    EDGE_REQUESTS_PER_SECOND: "100",
    LONGWATCH_DATA_DIR: dataDir,
    LONGWATCH_PORT: "0",
    ...writeSchedule(dataDir, { "poll-events": "* * * * * *", "walk-days": "*/2 * * * * *" }),
    // Every replica has a data folder of its own, and all need the same key.
    LONGWATCH_PSEUDONYM_KEY: "pseudonym-key-of-every-replica-of-the-test",
  });
  const terminal = { write: (_text: string, done: (error?: Error | null) => void) => (done(), true) };
  const app = createApp({ config, log: pino({ level: "silent" }), terminal, onStep: () => undefined });
  onTestFinished(() => app.stop());
  return app.start();
}

test("a zone that the platform refuses for a day costs the other zone of two replicas no poll and no list pass", async () => {
  const emulator = await createEmulator({
    zones: [REFUSED, OTHER],
    historyHours: 3,
    eventsPerSecond: 0.05,
    lateShare: 0,
  });
  onTestFinished(() => emulator.close());
  const liar = await startLyingPlatform({ url: emulator.url, now: () => emulator.now(), isWitnessed: false });
  onTestFinished(() => liar.close());
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  liar.tell({ kind: "refuses", routes: ROUTES, zones: [REFUSED], retryAfter: 86_400 });
  const [one] = await Promise.all([
    startReplica(database.url, liar, emulator.accessKey),
    startReplica(database.url, liar, emulator.accessKey),
  ]);
  const { pool, db } = one.database;
  const sum = (zoneId: number) =>
    Object.values(liar.requests().get(zoneId) ?? {}).reduce((total, count) => total + count, 0);

  await vi.waitFor(async () => {
    const { rows } = await pool.query(
      "select from ingest_cursors where zone_id = $1 and pass_result = 'full'",
      [OTHER],
    );
    expect(rows.length).toBeGreaterThan(0);
  }, WAIT);
  const expected = (await readShown(emulator.url, OTHER)).length;
  await vi.waitFor(async () => {
    const { rows } = await pool.query("select from waf_events where zone_id = $1", [OTHER]);
    expect(rows.length).toBeGreaterThanOrEqual(expected);
  }, WAIT);
  const refusedSoFar = sum(REFUSED);
  const searches = liar.requests().get(OTHER)?.search ?? 0;
  await vi.waitFor(() => expect(liar.requests().get(OTHER)?.search).toBeGreaterThan(searches + 4), WAIT);

  const pauses = await readPauses(db);
  expect(pauses.filter(({ zoneId, until }) => zoneId === null && until > Date.now())).toEqual([]);
  expect(pauses.find(({ zoneId }) => zoneId === REFUSED)?.refusedSince).not.toBeNull();
  // What was under way when the first refusal came. Later nothing is sent until the pause is over.
  expect(refusedSoFar).toBeGreaterThan(0);
  expect(sum(REFUSED)).toBe(refusedSoFar);
});
