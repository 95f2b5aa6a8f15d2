import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { readRuntimeFile } from "#app/runtime-file.ts";
import { quickEnvironment } from "../support/quick-environment.ts";

const root = path.join(import.meta.dirname, "..", "..");
const WAIT = { timeout: 90_000, interval: 100 };

/** Starts the service without settings, in a folder of its own, and collects its warnings. */
function start(dataDir: string) {
  const service = spawn(process.execPath, [path.join(root, "src", "main.ts"), "start"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      ...quickEnvironment(),
      LONGWATCH_DATA_DIR: dataDir,
      LONGWATCH_PORT: "0",
      LONGWATCH_LOG_LEVEL: "warn",
    },
  });
  onTestFinished(() => void service.kill("SIGKILL"));
  let told = "";
  service.stderr.setEncoding("utf8").on("data", (text: string) => {
    told += text;
  });
  const exited = once(service, "exit");
  return { service, exited, told: () => told };
}

async function countStored(databaseUrl: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on("error", () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<{ stored: number }>(
      "select count(*)::integer as stored from waf_events",
    );
    return rows[0]?.stored ?? 0;
  } finally {
    await client.end();
  }
}

test(
  "a stop in the middle of the backfill says nothing and leaves nothing running, and so does the next",
  async () => {
    const dataDir = mkdtempSync(path.join(tmpdir(), "longwatch-stop-"));
    // If root runs the tests, Postgres runs as another user, who has to enter the folder: else its files lie on disk.
    chmodSync(dataDir, 0o755);
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    let before = 0;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      const { service, exited, told } = start(dataDir);
      const running = await vi.waitFor(async () => {
        const file = readRuntimeFile(dataDir);
        if (file?.pid !== service.pid) throw new Error("not up yet");
        expect(await countStored(file?.databaseUrl ?? "")).toBeGreaterThan(before);
        return file;
      }, WAIT);
      before = await countStored(running?.databaseUrl ?? "");
      service.kill(signal);

      expect(await exited).toEqual([0, null]);
      expect(told()).toBe("");
      expect(readRuntimeFile(dataDir)).toBeNull();
      for (const url of [running?.databaseUrl, running?.emulator?.url]) {
        const port = Number(new URL(url ?? "").port);
        const client = new pg.Client({ host: "127.0.0.1", port, user: "nobody", database: "none" });
        await expect(client.connect()).rejects.toMatchObject({ code: "ECONNREFUSED" });
      }
    }
  },
  4 * WAIT.timeout,
);
