import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { readHeldCounts } from "#db/ingest/quarantine.ts";
import { readKeyProblem, replaceKeyId } from "#db/people/pseudonymise.ts";
import type { Emulator } from "#emulator/emulator.ts";
import { eraseCommand } from "#faces/cli/erase/erase.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { openEmulator } from "../emulator/support.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { quickEnvironment } from "../support/quick-environment.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { writeSchedule } from "../support/write-schedule.ts";

const PROGRAM = path.join(import.meta.dirname, "..", "..", "src", "main.ts");
const WAIT = { timeout: 120_000, interval: 200 };
const ZONE = 101;
let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(() => database.drop());

/** The service, as a process of its own. */
function start(emulator: Emulator, folder: string) {
  const child = spawn(process.execPath, [PROGRAM, "start"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      ...quickEnvironment(),
      DATABASE_URL: database.url,
      EDGE_API_URL: emulator.url,
      EDGE_API_KEY: emulator.accessKey,
      EDGE_SHIELD_ZONES: String(ZONE),
      EDGE_REQUESTS_PER_SECOND: "1000",
      LONGWATCH_DATA_DIR: folder,
      LONGWATCH_PORT: "0",
      ...writeSchedule(folder, { "poll-events": "*/5 * * * * *", "report-service": "*/5 * * * * *" }),
      LONGWATCH_LOG_LEVEL: "error",
    },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let told = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    told += text;
  });
  const exited = once(child, "exit").then(([code]) => ({ code: code as number | null, told }));
  return { child, exited };
}

async function stored() {
  const { rows } = await database.pool.query<{ log_id: string; ip: string }>(
    "select log_id, ip from waf_events",
  );
  return new Map(rows.map(({ log_id, ip }) => [log_id, ip]));
}

async function shownBy(emulator: Emulator) {
  const text = await (await fetch(`${emulator.url}/_emulator/events/${ZONE}`)).text();
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { logId: string; ip: string; timestamp: number });
}

test("a key that is lost while the service runs stops nothing, a start without it fails, and with the key back nothing is missing", async () => {
  const folder = makeTemporaryFolder("key-lifetime");
  const emulator = await openEmulator({
    clock: () => Date.now(),
    historyHours: 1,
    eventsPerSecond: 0.2,
    lateShare: 0,
  });
  const [somebody] = await shownBy(emulator);
  const person = somebody?.ip ?? "";
  const service = start(emulator, folder);
  await vi.waitFor(async () => expect((await stored()).size).toBeGreaterThan(100), WAIT);
  const until = new Date(Date.now() + 600_000).toISOString();
  const env = { DATABASE_URL: database.url, LONGWATCH_DATA_DIR: folder };
  const erase = ["--ip", person, "--yes", "--until", until];
  expect((await runStoreCommand(eraseCommand, env, erase, { now: Date.now() })).code).toBe(0);

  // Another process puts a key in use that this one does not get.
  const { rows } = await database.pool.query<{ key_id: string }>("select key_id from pseudonym_keys");
  const own = rows[0]?.key_id ?? "";
  await replaceKeyId(database.db, "another", Date.now());
  await database.pool.query("update erasures set key_id = 'another'");
  const heldEntries = async () => (await readHeldCounts(database.db))[0]?.entries ?? 0;
  await vi.waitFor(async () => expect(await heldEntries()).toBeGreaterThan(0), WAIT);
  await vi.waitFor(async () => expect(await readKeyProblem(database.db, 60_000)).toContain("another"), WAIT);
  await vi.waitFor(async () => {
    const alerts = await database.pool.query<{ headline: string }>(
      "select details #>> '{message,headline}' as headline from alerts where state = 'firing' and kind = 'self'",
    );
    const missing = expect.stringContaining("The pseudonym key another is missing") as string;
    expect(alerts.rows.map(({ headline }) => headline)).toContainEqual(missing);
  }, WAIT);

  const refused = await start(emulator, folder).exited;
  expect(refused.code).toBe(2);
  expect(refused.told).toContain("The pseudonym key another is missing");
  expect(refused.told).toContain("privacy rotate-key --lost --yes");

  await replaceKeyId(database.db, own, Date.now());
  await database.pool.query("update erasures set key_id = $1", [own]);
  await vi.waitFor(async () => expect(await readHeldCounts(database.db)).toEqual([]), WAIT);
  const shown = (await shownBy(emulator)).filter(({ timestamp }) => timestamp < Date.now() - 5_000);
  await vi.waitFor(async () => {
    const known = await stored();
    const wrong = shown.filter(({ logId, ip }) => known.get(logId) !== (ip === person ? "erased" : ip));
    expect(wrong).toEqual([]);
  }, WAIT);
  service.child.kill("SIGTERM");
  expect(await service.exited).toMatchObject({ code: 0 });
}, 400_000);
