import { existsSync } from "node:fs";
import type { Config } from "#config/config.ts";
import { createDatabase, type Database } from "#db/client.ts";
import { readClockOffset } from "#db/postgres/server.ts";
import type { Clock } from "#lib/clock.ts";
import { UsageError } from "#lib/errors.ts";
import { makePrivate } from "#lib/files.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/process.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { POSTGRES_FOLDERS } from "#store/embedded/place-cluster.ts";
import { superviseEmbeddedPostgres } from "#store/embedded/supervise-postgres.ts";
import type { OutageReports } from "./report-outages.ts";
import { readRuntimeFile } from "./runtime-file.ts";

/** @throws {UsageError} if a running service already uses the Postgres of this folder */
export async function checkDataFolder({
  databaseUrl,
  dataDir,
}: Pick<Config, "databaseUrl" | "dataDir">): Promise<void> {
  if (databaseUrl !== null) return;
  const running = readRuntimeFile(dataDir);
  // The process id alone proves nothing: after a crash another process may have it.
  if (running !== null && (await answers(running.databaseUrl))) {
    throw new UsageError([
      `LONGWATCH_DATA_DIR: ${JSON.stringify(dataDir)}: must not be that of a running service (process ${running.pid}${running.httpUrl === null ? "" : `, ${running.httpUrl}`}): stop it, or set another folder and LONGWATCH_PORT`,
    ]);
  }
}

/** Removes the permissions with which older versions let other users of the machine read the data. */
export function keepOthersOut({ dataDir }: Pick<Config, "dataDir">, log: Log): void {
  if (!existsSync(dataDir)) return;
  const open = makePrivate(dataDir, POSTGRES_FOLDERS);
  if (open.length > 0)
    log.warn(
      { entries: open.length, first: open[0]?.path, action: "chmod go= as its owner" },
      "data folder open to others",
    );
}

/** Opens the configured database, or starts one here and restarts it whenever it ends by itself. */
export async function openPostgres(
  { databaseUrl, dataDir }: Pick<Config, "databaseUrl" | "dataDir">,
  stack: StopStack,
  openReports: () => OutageReports,
): Promise<Secret> {
  if (databaseUrl !== null) return databaseUrl;
  const postgres = await superviseEmbeddedPostgres({
    ...openReports(),
    dataDir,
    settings: ["max_wal_size=2GB", "shared_buffers=256MB", "checkpoint_timeout=15min"],
  });
  stack.defer("embedded Postgres", () => postgres.stop());
  return createSecret(postgres.url);
}

async function answers(url: string): Promise<boolean> {
  const onError = () => undefined;
  const probe = createDatabase({
    url,
    max: 1,
    applicationName: "longwatch",
    connectTimeoutMs: 2_000,
    onError,
  });
  try {
    await probe.pool.query("select 1");
    return true;
  } catch {
    return false;
  } finally {
    await probe.close();
  }
}

const MEASURE_EVERY_MS = 60_000;

/**
 * Returns Postgres's time, estimated with this machine's clock, so that replicas whose clocks differ agree on which
 * work is due and which minutes are closed.
 */
export async function openClock(
  database: Database,
  log: Log,
  stack: StopStack,
  /** Called after every measurement: with null if the database answered, otherwise with the error. */
  onMeasured: (error: unknown) => void = () => undefined,
): Promise<Clock> {
  let offsetMs = await readClockOffset(database.db);
  const measure = async () => {
    try {
      offsetMs = await readClockOffset(database.db);
      onMeasured(null);
    } catch (thrown) {
      onMeasured(thrown);
      log.debug({ err: thrown }, "clock offset not measured");
    }
  };
  const timer = setInterval(() => void measure(), MEASURE_EVERY_MS);
  stack.defer("clock", () => clearInterval(timer));
  return () => Date.now() + Math.round(offsetMs);
}
