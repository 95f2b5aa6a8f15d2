import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pino from "pino";
import type { Browser } from "playwright-core";
import { expect, vi } from "vitest";
import { createApp, type RunningApp } from "#app/app.ts";
import { parseServiceConfig } from "#config/config.ts";
import { createEmulator } from "#emulator/emulator.ts";
import { createSignInLink } from "#people/keys/issue-key.ts";
import { createTestDatabase } from "../../support/database.ts";
import { writeSchedule } from "../../support/write-schedule.ts";
import { archiveOneDay } from "./archive-one-day.ts";
import { openBrowser } from "./open-browser.ts";
import { type SignedIn, signIn } from "./sign-in.ts";

/** Enough for a span of eight hours that has ended, and for the usual number of events. */
const HISTORY_HOURS = 10;

const ROOT = path.join(import.meta.dirname, "..", "..", "..");

export interface BrowserWorld {
  readonly running: RunningApp;
  readonly origin: string;
  readonly adminKey: string;
  readonly browser: Browser;
  /** The folder of the archive, which has one day of zone 101. */
  readonly archiveFolder: string;
  /** Of a session of the admin key. */
  readonly signedIn: SignedIn;
  readonly makeLink: () => Promise<string>;
  readonly close: () => Promise<void>;
}

/** The service on emulated data with an attack, and a browser. One for all tests of the console. */
export async function openWorld(): Promise<BrowserWorld> {
  const built = spawnSync(process.execPath, [path.join(ROOT, "src", "build-console.mjs")], {
    cwd: ROOT,
    encoding: "utf8",
  });
  if (built.status !== 0) throw new Error(`the console was not built: ${built.stderr}`);
  const emulator = await createEmulator({
    historyHours: HISTORY_HOURS,
    eventsPerSecond: 0.05,
    lateShare: 0,
    attacks: ["zone=101,rule=942100,start=-5m,duration=20m,rate=4/s"],
  });
  const database = await createTestDatabase();
  const dataDir = mkdtempSync(path.join(tmpdir(), "longwatch-browser-"));
  const archiveFolder = path.join(dataDir, "archive");
  const adminKey = `lw_browsertest_${"a".repeat(48)}`;
  const config = parseServiceConfig({
    DATABASE_URL: database.url,
    EDGE_API_URL: emulator.url,
    EDGE_API_KEY: emulator.accessKey,
    EDGE_SHIELD_ZONES: "101,102",
    EDGE_REQUESTS_PER_SECOND: "1000",
    LONGWATCH_ADMIN_KEY: adminKey,
    LONGWATCH_DATA_DIR: dataDir,
    LONGWATCH_ARCHIVE_DIR: archiveFolder,
    LONGWATCH_PORT: "0",
    ...writeSchedule(
      dataDir,
      { "poll-events": "*/5 * * * * *" },
      { files: { kind: "file", folder: path.join(dataDir, "forwarded"), start: "all" } },
    ),
  });
  const terminal = { write: (_: string, done: () => void) => (done(), true) };
  const app = createApp({ config, log: pino({ level: "silent" }), terminal, onStep: () => undefined });
  const running = await app.start();
  await untilCopied(running);
  await archiveOneDay(running.database, archiveFolder);
  const origin = running.httpUrl ?? "";
  const browser = await openBrowser();
  const signedIn = await signIn(browser, origin, adminKey);
  return {
    running,
    origin,
    adminKey,
    archiveFolder,
    browser,
    signedIn,
    makeLink: async () => {
      const made = await createSignInLink(running.database, { url: origin, key: null, actor: "test" });
      if (made.kind !== "made") throw new Error(made.kind);
      return made.link.reveal();
    },
    close: async () => {
      await browser.close();
      await app.stop();
      await emulator.close();
      await database.drop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Tests are shuffled: without this, the first ones would see hours that the service has not read yet. */
async function untilCopied({ database }: RunningApp): Promise<void> {
  await vi.waitFor(
    async () => {
      const { rows } = await database.pool.query<{ hours: number; read: number }>(
        `select count(*)::int as hours,
           count(*) filter (where searched_through >= least(starts_at + interval '1 hour', now() - interval '1 minute'))::int as read
         from coverage_windows where starts_at > now() - interval '1 hour' * $1`,
        [HISTORY_HOURS + 1],
      );
      expect(rows[0]?.hours).toBeGreaterThanOrEqual(2 * (HISTORY_HOURS + 1));
      expect(rows[0]?.read).toBe(rows[0]?.hours);
    },
    { timeout: 120_000, interval: 250 },
  );
}
